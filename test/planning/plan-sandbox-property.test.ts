import * as fc from 'fast-check'
import t from 'tap'
import type { Pod } from '../../src/api/core.ts'
import type { Sandbox } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import { planSandbox } from '../../src/planning/plan-sandbox.ts'
import type { SandboxStep } from '../../src/planning/sandbox-steps.ts'
import type { SandboxView } from '../../src/planning/sandbox-view.ts'
import { mergePatched } from '../support/merge-patch.ts'
import {
  aClaimed,
  aMember,
  aPod,
  aReadyPod,
  aSandbox,
  at,
  aView,
  dataTemplate,
  noon,
  serviceOf,
  strangerOwner,
  volumeClaimOf,
} from './sandbox-fixtures.ts'

/** The view after a step has been carried out by an API server that deletes at once. Undefined: the sandbox is gone. */
function applied(view: SandboxView, step: SandboxStep): SandboxView | undefined {
  const volumeClaims = new Map(view.volumeClaims)
  const replaced = <T extends KubeObject>(object: T, patch: object) => mergePatched(object, patch)
  switch (step.kind) {
    case 'createPod': {
      const pod = { ...step.object, metadata: { ...step.object.metadata, uid: 'new-uid', creationTimestamp: at(0) } }
      return { ...view, pods: [...view.pods, pod], ownPodUid: 'new-uid' }
    }
    case 'createService':
      return { ...view, service: step.object }
    case 'createVolumeClaim':
      return { ...view, volumeClaims: volumeClaims.set(step.object.metadata.name ?? '', step.object) }
    case 'patchPod':
      return { ...view, pods: view.pods.map((pod) => (pod === step.object ? replaced(pod, step.patch) : pod)) }
    case 'patchService':
      return { ...view, service: replaced(step.object, step.patch) }
    case 'adopt': {
      const object = replaced<KubeObject>(step.object, step.patch)
      if (step.part === 'Service') return { ...view, service: object }
      if (step.part === 'Pod') return { ...view, pods: view.pods.map((pod) => (pod === step.object ? object : pod)) }
      return { ...view, volumeClaims: volumeClaims.set(object.metadata.name ?? '', object) }
    }
    case 'deletePod':
      return { ...view, pods: view.pods.filter((pod) => pod !== step.object) }
    case 'deleteService':
      return { ...view, service: undefined }
    case 'deleteSandbox':
      return undefined
    default:
      return step satisfies never
  }
}

/** The view after everything in its plan has happened. */
function carriedOut(view: SandboxView, now: number): SandboxView | undefined {
  const plan = planSandbox(view, now)
  let next: SandboxView | undefined = view
  for (const step of plan.steps) next = next && applied(next, step)
  if (!next || plan.status.kind !== 'write') return next
  return { ...next, sandbox: mergePatched(next.sandbox, plan.status.patch) }
}

const spec = fc.record({
  service: fc.constantFrom(true, false, undefined),
  operatingMode: fc.constantFrom('Running', 'Suspended', undefined),
  shutdownTime: fc.constantFrom(at(-10), at(3_600), undefined),
  shutdownPolicy: fc.constantFrom('Delete', 'Retain', undefined),
  volumeClaimTemplates: fc.constantFrom([dataTemplate], undefined),
})

const offered = { ownerReferences: [], labels: { [labels.adoptable]: 'true' } }
const ownership = fc.constantFrom({}, { ownerReferences: [] }, { ownerReferences: [strangerOwner] }, offered)
const leaving = fc.constantFrom({}, { deletionTimestamp: at(1) })
const podPhase = fc.constantFrom('Pending', 'Running', 'Succeeded', 'Failed')

const views = fc
  .record({
    make: fc.constantFrom(aSandbox, aMember, aClaimed),
    spec,
    pod: fc.option(fc.record({ ownership, leaving, phase: podPhase, isReady: fc.boolean() }), { nil: undefined }),
    service: fc.option(fc.record({ ownership, leaving }), { nil: undefined }),
    volume: fc.option(fc.record({ ownership, leaving }), { nil: undefined }),
    isProven: fc.boolean(),
    recreateFailedPods: fc.boolean(),
    claimsAreWaiting: fc.boolean(),
  })
  .map((facts): SandboxView => {
    const given = Object.fromEntries(Object.entries(facts.spec).filter(([, value]) => value !== undefined))
    const sandbox: Sandbox = facts.make({ spec: given })
    const podMetadata = { ...facts.pod?.ownership, ...facts.pod?.leaving }
    const pod: Pod | undefined =
      facts.pod &&
      (facts.pod.isReady
        ? aReadyPod(sandbox, podMetadata)
        : aPod(sandbox, { metadata: podMetadata, status: { phase: facts.pod.phase } }))
    return aView({
      sandbox,
      pods: pod ? [pod] : [],
      service: facts.service && serviceOf(sandbox, { ...facts.service.ownership, ...facts.service.leaving }),
      volumeClaims: new Map(
        facts.volume
          ? [['data-box', volumeClaimOf(sandbox, { ...facts.volume.ownership, ...facts.volume.leaving })]]
          : [],
      ),
      ownPodUid: facts.isProven ? 'pod-uid' : undefined,
      claimsAreWaiting: facts.claimsAreWaiting,
      config: {
        ...defaultConfig,
        sandboxes: { ...defaultConfig.sandboxes, recreateFailedPods: facts.recreateFailedPods },
      },
    })
  })

/** Mark, delete and recreate, patch what was created or adopted, publish: no sandbox needs more passes than this. */
const mostPasses = 5

t.test('carried out again and again, a plan comes to an end after which nothing is left to do', async () => {
  fc.assert(
    fc.property(views, (start) => {
      const now = noon + 60_000
      let view: SandboxView | undefined = { ...start, deferredSince: noon }
      for (let pass = 0; view && pass < mostPasses; pass++) view = carriedOut(view, now)
      if (!view) return true
      const plan = planSandbox(view, now)
      return plan.steps.length === 0 && plan.status.kind === 'unchanged'
    }),
    { numRuns: 1_000 },
  )
})

t.test('no plan touches an object that is neither its own nor offered to it', async () => {
  fc.assert(
    fc.property(views, (view) => {
      const isForeign = ({ metadata }: KubeObject) =>
        metadata.ownerReferences?.[0]?.uid !== 'box-uid' && metadata.labels?.[labels.adoptable] === undefined
      return planSandbox(view, noon).steps.every(
        (step) => step.kind.startsWith('create') || step.kind === 'deleteSandbox' || !isForeign(step.object),
      )
    }),
    { numRuns: 1_000 },
  )
})

t.test('no pool member and no claimed sandbox ever takes over an object', async () => {
  fc.assert(
    fc.property(views, (view) => {
      const isStandAlone = view.sandbox.metadata.ownerReferences === undefined
      return isStandAlone || planSandbox(view, noon).steps.every(({ kind }) => kind !== 'adopt')
    }),
    { numRuns: 1_000 },
  )
})
