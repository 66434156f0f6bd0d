import type { KubeObject, Resource } from '../../src/kube/object.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Change } from '../../src/runtime/informer.ts'
import { createReflector } from '../../src/runtime/reflector.ts'
import type { ReadStore } from '../../src/runtime/store.ts'
import { createLogger } from '../../src/telemetry/logger.ts'
import { namespace, type Stage } from './stage.ts'

/** Follows one resource by a watch, as a client would, and tells when something came to be true. */
export interface Follower<T extends KubeObject> {
  readonly store: ReadStore<T>
  onChange(handler: (change: Change<T>) => void): void
  /**
   * Resolves with the time (`performance.now`) at which `holds` was first seen to hold; it is asked after each change,
   * so it should be cheap. Rejects after `withinMs` (default 2 min), naming `what`.
   */
  when(what: string, holds: () => boolean, withinMs?: number): Promise<number>
  /** Stops following; the end of the stage does so too. */
  stop(): void
}

/** Resolves once everything there is has been seen. */
export async function follow<T extends KubeObject>(
  { client, signal }: Pick<Stage, 'client' | 'signal'>,
  resource: Resource<T>,
): Promise<Follower<T>> {
  const stopping = new AbortController()
  const log = createLogger({ level: 'error' })
  const reflector = createReflector({ client, resource, namespace, clock: systemClock, log })
  const waiting = new Set<() => void>()
  void reflector.run(AbortSignal.any([signal, stopping.signal]))
  await reflector.synced
  // After every other handler: what is waited for may be what they count.
  reflector.onChange(() =>
    queueMicrotask(() => {
      for (const look of waiting) look()
    }),
  )
  return {
    store: reflector.store,
    onChange: (handler) => reflector.onChange(handler),
    when(what, holds, withinMs = 120_000) {
      return new Promise((resolve, reject) => {
        const look = () => {
          if (!holds()) return
          leave()
          resolve(performance.now())
        }
        const late = () => (leave(), reject(new Error(`waited ${withinMs / 1000} s in vain for ${what}`)))
        const timer = setTimeout(late, withinMs)
        const leave = () => (clearTimeout(timer), waiting.delete(look))
        waiting.add(look)
        look()
      })
    },
    stop: () => stopping.abort(),
  }
}
