import { randomUUID } from 'node:crypto'
import { persistentVolumeClaims, pods, services, type Pod } from '../api/core.ts'
import { sandboxKind, type Sandbox } from '../api/kinds.ts'
import { annotations, conditionTypes, sandboxReasons } from '../api/vocabulary.ts'
import { isKubeError, type KubeError } from '../kube/errors.ts'
import type { KubeObject, Resource } from '../kube/object.ts'
import { findCondition } from '../planning/conditions.ts'
import type { SandboxPlan } from '../planning/plan-sandbox.ts'
import { nameOf } from '../planning/sandbox-identity.ts'
import type { SandboxStep } from '../planning/sandbox-steps.ts'
import type { SandboxView } from '../planning/sandbox-view.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { exceededQuota } from './quota.ts'
import { slotOf, type SandboxNotes } from './sandbox-memory.ts'
import { measureFirstReady } from './sandbox-metrics.ts'

/** How a step ended, when the write itself did not fail. */
type StepEnd =
  | 'done'
  /** Something else than expected was there, or the server refused: the rest of the plan rests on a wrong view. */
  | 'planAgain'
  /** The namespace is being deleted, and everything in it. */
  | 'stop'

/** Waits after definite refusals to create, in milliseconds: doubling from the first to the longest. */
const firstRetryMs = 1_000
/** Quota is freed by others at any moment; a refused spec is accepted only once something is changed by hand. */
const longestRetryMs = { quota: 10_000, other: 60_000 }

/** Carries out a plan: its steps in order, then its status, which is published even when a step fails. */
export async function act(
  plan: SandboxPlan,
  view: SandboxView,
  notes: SandboxNotes,
  deps: ControllerDependencies,
): Promise<Outcome> {
  notes.deferredSince = plan.defers ? (notes.deferredSince ?? deps.clock.now()) : undefined
  let end: StepEnd = 'done'
  try {
    for (const step of plan.steps) {
      end = await carryOut(step, view.sandbox, notes, deps)
      if (end !== 'done') break
    }
  } finally {
    if (end !== 'stop') await publish(plan, view.sandbox, notes, deps)
  }
  if (end === 'stop') return { kind: 'done' }
  if (end === 'planAgain') return { kind: 'recheck', afterMs: 0, because: 'a step found things changed' }
  return plan.again ? { kind: 'recheck', ...plan.again } : { kind: 'done' }
}

async function carryOut(
  step: SandboxStep,
  sandbox: Sandbox,
  notes: SandboxNotes,
  deps: ControllerDependencies,
): Promise<StepEnd> {
  switch (step.kind) {
    case 'createPod':
      return createPod(step.object, sandbox, notes, deps)
    case 'createService':
      return create(services, step.object, sandbox, notes, deps)
    case 'createVolumeClaim':
      return create(persistentVolumeClaims, step.object, sandbox, notes, deps)
    case 'adopt':
      return change(partResources[step.part], step.object, step.patch, notes, deps)
    case 'patchPod':
      return change(pods, step.object, step.patch, notes, deps)
    case 'patchService':
      return change(services, step.object, step.patch, notes, deps)
    case 'deletePod':
      deps.log.info({ sandbox: refOf(sandbox), pod: nameOf(step.object), because: step.because }, 'deleting a Pod')
      return remove(pods, step.object, { uid: step.object.metadata.uid }, notes, deps)
    case 'deleteService':
      return remove(services, step.object, { uid: step.object.metadata.uid }, notes, deps)
    case 'deleteSandbox': {
      // With the version of the expiry mark: a Sandbox that was extended since lives on.
      const { uid, resourceVersion } = step.object.metadata
      return remove(sandboxKind, step.object, { uid, resourceVersion }, notes, deps)
    }
    default:
      return step satisfies never
  }
}

const partResources: Record<'Pod' | 'Service' | 'PersistentVolumeClaim', Resource> = {
  Pod: pods,
  Service: services,
  PersistentVolumeClaim: persistentVolumeClaims,
}

/** One POST. Repeated under the same name, and with the same mark, until its outcome is known. */
async function createPod(
  pod: Pod,
  sandbox: Sandbox,
  notes: SandboxNotes,
  deps: ControllerDependencies,
): Promise<StepEnd> {
  const attempt = (notes.attempt ??= randomUUID())
  const marked = { ...pod.metadata.annotations, [annotations.attempt]: attempt }
  return create(
    pods,
    { ...pod, metadata: { ...pod.metadata, annotations: marked } },
    sandbox,
    notes,
    deps,
    (created) => {
      notes.ownPodUid = created.metadata.uid
      notes.attempt = undefined
    },
  )
}

async function create<T extends KubeObject>(
  resource: Resource<T>,
  object: T,
  sandbox: Sandbox,
  notes: SandboxNotes,
  deps: ControllerDependencies,
  onCreated?: (created: T) => void,
): Promise<StepEnd> {
  const slot = slotOf(resource.kind, nameOf(object))
  try {
    const created = await deps.client.create(resource, object)
    notes.remember(slot, created, deps.clock.now())
    notes.refusal = undefined
    onCreated?.(created)
    return 'done'
  } catch (error) {
    if (isKubeError(error, 'AlreadyExists')) {
      notes.remember(slot, await deps.client.get(resource, refOf(object)), deps.clock.now())
      return 'planAgain'
    }
    if (isNamespaceGone(error)) return 'stop'
    if (!isKubeError(error, 'Forbidden', 'Invalid', 'BadRequest')) throw error
    noteRefusal(error, resource, sandbox, notes, deps)
    return 'planAgain'
  }
}

/** A definite no: remembered, so that the next pass says it in the status and waits before it asks again. */
function noteRefusal(
  error: KubeError,
  resource: Resource,
  sandbox: Sandbox,
  notes: SandboxNotes,
  { client, clock, events }: ControllerDependencies,
): void {
  const quota = exceededQuota(error)
  const { generation } = sandbox.metadata
  const before = notes.refusal
  const count = before && before.generation === generation ? before.count + 1 : 1
  const delayMs = Math.min(firstRetryMs * 2 ** (count - 1), quota ? longestRetryMs.quota : longestRetryMs.other)
  const reason = quota ? sandboxReasons.quotaExceeded : sandboxReasons.reconcilerError
  const message = `The API server refused the ${resource.kind}: ${quota ?? error.message}`
  notes.refusal = {
    reason,
    message,
    count,
    generation,
    retryAt: clock.now() + client.serverClockOffsetMs() + delayMs,
  }
  if (count === 1) events.record(sandbox, 'Warning', reason, message)
}

async function change(
  resource: Resource,
  object: KubeObject,
  patch: object,
  notes: SandboxNotes,
  { client, clock }: ControllerDependencies,
): Promise<StepEnd> {
  const slot = slotOf(resource.kind, nameOf(object))
  try {
    notes.remember(slot, await client.patch(resource, refOf(object), patch, { type: 'merge' }), clock.now())
    return 'done'
  } catch (error) {
    notes.forget(slot)
    // Gone in the meantime: the watch brings the news, and the next pass acts on it.
    if (isKubeError(error, 'NotFound')) return 'done'
    throw error
  }
}

async function remove(
  resource: Resource,
  object: KubeObject,
  preconditions: { uid: string | undefined; resourceVersion?: string | undefined },
  notes: SandboxNotes,
  { client, clock }: ControllerDependencies,
): Promise<StepEnd> {
  const slot = slotOf(resource.kind, nameOf(object))
  notes.expectDeletion(slot, object, clock.now())
  try {
    const { uid, resourceVersion } = preconditions
    await client.delete(resource, refOf(object), {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    })
    return 'done'
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return 'done'
    notes.forget(slot)
    throw error
  }
}

async function publish(
  plan: SandboxPlan,
  sandbox: Sandbox,
  notes: SandboxNotes,
  deps: ControllerDependencies,
): Promise<void> {
  if (plan.status.kind !== 'write') return
  const { status, patch } = plan.status
  try {
    const written = await deps.client.patch(sandboxKind, refOf(sandbox), patch, {
      type: 'merge',
      subresource: 'status',
    })
    notes.remember(slotOf(sandboxKind.kind, nameOf(sandbox)), written, deps.clock.now())
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return
    throw error
  }
  const ready = findCondition(status.conditions, conditionTypes.ready)
  const before = findCondition(sandbox.status?.conditions, conditionTypes.ready)
  if (ready?.reason === sandboxReasons.expired && before?.reason !== ready.reason) {
    deps.events.record(sandbox, 'Normal', ready.reason, ready.message)
  }
  if (ready?.status === 'True') measureFirstReady(sandbox, deps)
}

function isNamespaceGone(error: unknown): boolean {
  if (isKubeError(error, 'NotFound')) return true
  return isKubeError(error, 'Forbidden') && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}

function refOf(object: KubeObject): { namespace: string; name: string } {
  return { namespace: object.metadata.namespace ?? '', name: nameOf(object) }
}
