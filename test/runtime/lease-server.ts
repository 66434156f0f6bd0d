import type { KubeClient } from '../../src/kube/client.ts'
import type { KubeError } from '../../src/kube/errors.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import type { Lease } from '../../src/runtime/lease-lock.ts'
import { kubeError } from './scripted-api.ts'

/** What becomes of a request: it arrives or not, its reply arrives or not, or it hangs until it is given up. */
export type Fate = 'ok' | 'unreachable' | 'lost-reply' | 'hang'

/** One Lease in memory, with optimistic locking, and a client of it for each competitor. */
export class LeaseServer {
  lease: Lease | undefined
  #version = 0

  /** A client whose requests meet the fate that `fate` returns. */
  client(fate: () => Fate = () => 'ok'): KubeClient & { requests: string[] } {
    const requests: string[] = []
    const meet = async <R>(verb: string, signal: AbortSignal | undefined, carryOut: () => R): Promise<R> => {
      requests.push(verb)
      await Promise.resolve()
      switch (fate()) {
        case 'ok':
          return carryOut()
        case 'unreachable':
          throw kubeError('Unreachable', 0)
        case 'lost-reply':
          carryOut()
          throw kubeError('OutcomeUnknown', 0)
        case 'hang':
          await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
          throw kubeError('Aborted', 0)
        default:
          throw new Error('no such fate')
      }
    }
    const client = {
      requests,
      get: (_: unknown, __: unknown, options?: { signal?: AbortSignal }) =>
        meet('get', options?.signal, () => structuredClone(this.lease) ?? raise(kubeError('NotFound', 404))),
      create: (_: unknown, object: KubeObject, options?: { signal?: AbortSignal }) =>
        meet('create', options?.signal, () => {
          if (this.lease !== undefined) throw kubeError('AlreadyExists', 409)
          return this.#store(object)
        }),
      replace: (_: unknown, object: KubeObject, options?: { signal?: AbortSignal }) =>
        meet('replace', options?.signal, () => {
          const isCurrent = this.lease?.metadata.resourceVersion === object.metadata.resourceVersion
          return isCurrent ? this.#store(object) : raise(kubeError('Conflict', 409))
        }),
    }
    return client as unknown as KubeClient & { requests: string[] }
  }

  #store(object: Lease): Lease {
    this.#version += 1
    this.lease = structuredClone({
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    })
    return structuredClone(this.lease)
  }
}

function raise(error: KubeError): never {
  throw error
}
