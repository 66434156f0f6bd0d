import { persistentVolumeClaims, pods, services } from '../api/core.ts'
import { sandboxKind } from '../api/kinds.ts'
import { controllerOf, keyOf, refKey, type KubeObject, type Resource } from '../kube/object.ts'
import { planSandbox } from '../planning/plan-sandbox.ts'
import { nameOf } from '../planning/sandbox-identity.ts'
import { runController, type Outcome } from '../runtime/controller.ts'
import type { Informer } from '../runtime/informer.ts'
import { createControllerQueue } from './controller-queue.ts'
import type { Controller, ControllerDependencies } from './dependencies.ts'
import { act } from './sandbox-act.ts'
import { gatherSandbox } from './sandbox-gather.ts'
import { SandboxMemory, slotOf } from './sandbox-memory.ts'

/** Requests of a pass follow one another, so this many passes keep the API server busy while a pool fills. */
const concurrency = 32

/** Gives every Sandbox its Pod, volumes and Service, and publishes its status: gather, plan, act. */
export function createSandboxController(deps: ControllerDependencies): Controller {
  const { informers, clock, client, log } = deps
  const queue = createControllerQueue('sandbox', deps)
  const memory = new SandboxMemory()

  const reconcile = async (key: string): Promise<Outcome> => {
    const view = await gatherSandbox(key, { deps, memory })
    if (!view) {
      memory.forget(key)
      return { kind: 'done' }
    }
    const plan = planSandbox(view, clock.now() + client.serverClockOffsetMs())
    return act(plan, view, memory.about(view.sandbox), deps)
  }

  informers.sandboxes.onChange(({ object }) => queue.add(keyOf(object)))
  deps.onConfigChange(() => {
    for (const sandbox of informers.sandboxes.store.values()) queue.add(keyOf(sandbox))
  })
  followParts(pods, informers.pods)
  followParts(services, informers.services)
  followParts(persistentVolumeClaims, informers.volumeClaims)

  /** Wakes the Sandbox that controls a part, and the one that waits for its name. */
  function followParts<T extends KubeObject>(resource: Resource<T>, informer: Informer<T>): void {
    informer.onChange(({ kind, object }) => {
      const { namespace = '', uid } = object.metadata
      const owner = controllerOf(object)
      const names = new Set([nameOf(object)])
      if (owner?.kind === sandboxKind.kind) names.add(owner.name)
      for (const name of names) {
        const key = refKey({ namespace, name })
        if (kind === 'deleted') memory.at(key)?.forget(slotOf(resource.kind, nameOf(object)), uid)
        if (informers.sandboxes.store.get(key)) queue.add(key)
      }
    })
  }

  return {
    name: 'sandbox',
    queue,
    run: (signal) => runController({ name: 'sandbox', queue, reconcile, concurrency, clock, log }, signal),
  }
}
