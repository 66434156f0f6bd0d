import t from 'tap'
import type { Sandbox } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { planSandbox, type SandboxPlan } from '../../src/planning/plan-sandbox.ts'
import type { SandboxView } from '../../src/planning/sandbox-view.ts'
import {
  aMember,
  aPod,
  aReadyPod,
  aSandbox,
  at,
  atRest,
  aView,
  dataTemplate,
  noon,
  running,
  serviceOf,
  settled,
  strangerOwner,
  volumeClaimOf,
} from './sandbox-fixtures.ts'

const kinds = (plan: SandboxPlan) => plan.steps.map(({ kind }) => kind)
const readyOf = (plan: SandboxPlan) =>
  plan.status.kind === 'write' ? findCondition(plan.status.status.conditions, 'Ready') : undefined
/** The plan once nothing more may be put off. */
const overdue = (view: SandboxView, now = noon) => planSandbox({ ...view, deferredSince: now - 1_000 }, now)
const statusOf = (plan: SandboxPlan) => (plan.status.kind === 'write' ? plan.status.status : undefined)
const withStatus = (sandbox: Sandbox, reason: string, status: 'True' | 'False' = 'False'): Sandbox => ({
  ...sandbox,
  status: { conditions: [{ type: 'Ready', status, reason, message: '', lastTransitionTime: at(0) }] },
})

t.test('0: a sandbox that is being deleted does nothing but say so', async (t) => {
  const sandbox = aSandbox({ metadata: { deletionTimestamp: at(1) } })
  const plan = planSandbox(aView({ sandbox: withStatus(sandbox, 'DependenciesReady', 'True') }), noon)
  t.same(plan.steps, [])
  t.equal(statusOf(plan)?.phase, 'Terminating')
  t.equal(readyOf(plan)?.status, 'False')
  t.equal(plan.again, undefined)
})

t.test('0: a sandbox deleted because it has expired keeps saying that it has expired', async (t) => {
  const sandbox = aSandbox({ metadata: { deletionTimestamp: at(1) }, spec: { shutdownTime: at(0) } })
  t.equal(readyOf(overdue(aView({ sandbox: withStatus(sandbox, 'SandboxExpired') })))?.reason, 'SandboxExpired')
})

t.test('1: a sandbox past its shutdownTime is marked before anything is deleted', async (t) => {
  const sandbox = aSandbox({ spec: { shutdownTime: at(1), shutdownPolicy: 'Delete', service: true } })
  const plan = planSandbox(atRest(sandbox, { service: serviceOf(sandbox) }), noon + 1_000)
  t.same(plan.steps, [])
  t.equal(readyOf(plan)?.reason, 'SandboxExpired')
  t.equal(plan.again?.afterMs, 0)
})

t.test('1: once marked, Pod and Service go, and the sandbox stays when the policy is Retain', async (t) => {
  const sandbox = withStatus(aSandbox({ spec: { shutdownTime: at(0), service: true } }), 'SandboxExpired')
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)], service: serviceOf(sandbox) }), noon)
  t.same(kinds(plan), ['deletePod', 'deleteService'])
})

t.test('1: once marked, the sandbox goes last when the policy is Delete', async (t) => {
  const sandbox = withStatus(aSandbox({ spec: { shutdownTime: at(0), shutdownPolicy: 'Delete' } }), 'SandboxExpired')
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)] }), noon)
  t.same(kinds(plan), ['deletePod', 'deleteSandbox'])
  t.same(plan.status, { kind: 'unchanged' })
})

t.test('1: volume claims are kept when a retained sandbox expires', async (t) => {
  const spec = { shutdownTime: at(0), volumeClaimTemplates: [dataTemplate] }
  const sandbox = withStatus(aSandbox({ spec }), 'SandboxExpired')
  t.same(kinds(planSandbox(aView({ sandbox }), noon)), [])
})

t.test('1: a foreign Pod and Service of its name survive the expiry', async (t) => {
  const sandbox = withStatus(aSandbox({ spec: { shutdownTime: at(0) } }), 'SandboxExpired')
  const pod = aReadyPod(sandbox, { ownerReferences: [] })
  const service = serviceOf(sandbox, { ownerReferences: [strangerOwner] })
  t.same(kinds(planSandbox(aView({ sandbox, pods: [pod], service }), noon)), [])
})

t.test('1: a retained sandbox comes to rest when its Pod is gone, without addresses', async (t) => {
  const ready = atRest(aSandbox({ spec: { shutdownTime: at(1) } }))
  const marked = settled(ready, noon + 1_000)
  t.equal(marked.sandbox.status?.phase, 'Terminating')
  const view = settled({ ...marked, pods: [] }, noon + 2_000)
  t.equal(view.sandbox.status?.phase, 'Succeeded')
  t.equal(view.sandbox.status?.podIPs, undefined)
  t.equal(planSandbox(view, noon + 2_000).again, undefined)
})

t.test('1: whether it had finished stays known after the expiry took the Pod', async (t) => {
  const sandbox = aSandbox({ spec: { shutdownTime: at(5) } })
  const failed = settled(aView({ sandbox, pods: [aPod(sandbox, { status: { phase: 'Failed' } })] }))
  const marked = settled({ ...failed }, noon + 5_000)
  const gone = settled({ ...marked, pods: [] }, noon + 6_000)
  t.equal(findCondition(gone.sandbox.status?.conditions, 'Finished')?.reason, 'PodFailed')
  t.equal(gone.sandbox.status?.phase, 'Failed')
})

t.test('1: a sandbox that has time left is looked at again exactly when it expires', async (t) => {
  const view = atRest(aSandbox({ spec: { shutdownTime: at(3_600) } }))
  t.equal(planSandbox(view, noon + 1_000).again?.afterMs, 3_599_000)
})

t.test('1: a sandbox whose time was extended lives on', async (t) => {
  const sandbox = withStatus(aSandbox({ spec: { shutdownTime: at(60) } }), 'SandboxExpired')
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)], ownPodUid: 'pod-uid' }), noon)
  t.same(plan.steps, [])
  t.equal(readyOf(plan)?.status, 'True')
})

t.test('2: a suspended sandbox loses its Pod and keeps volumes and Service', async (t) => {
  const spec = { operatingMode: 'Suspended', service: true, volumeClaimTemplates: [dataTemplate] } as const
  const sandbox = aSandbox({ spec: { ...spec, volumeClaimTemplates: [dataTemplate] } })
  const volumeClaims = new Map([['data-box', volumeClaimOf(sandbox)]])
  const plan = planSandbox(
    aView({ sandbox, pods: [aReadyPod(sandbox)], service: serviceOf(sandbox), volumeClaims }),
    noon,
  )
  t.same(kinds(plan), ['deletePod'])
  t.equal(readyOf(plan)?.reason, 'SandboxSuspended')
  t.equal(statusOf(plan)?.phase, 'Paused')
  t.equal(findCondition(statusOf(plan)?.conditions, 'Suspended')?.reason, 'PodNotTerminated')
})

t.test('2: suspension is complete, and at rest, when the Pod is gone', async (t) => {
  const view = settled(aView({ sandbox: aSandbox({ spec: { operatingMode: 'Suspended' } }) }))
  t.equal(findCondition(view.sandbox.status?.conditions, 'Suspended')?.status, 'True')
  const plan = planSandbox(view, noon)
  t.same([plan.steps, plan.status, plan.again], [[], { kind: 'unchanged' }, undefined])
})

t.test('2: a sandbox that runs again gets a new Pod and is no longer called suspended', async (t) => {
  const suspended = settled(aView({ sandbox: aSandbox({ spec: { operatingMode: 'Suspended' } }) }))
  const resumed = { ...suspended.sandbox, spec: { ...suspended.sandbox.spec, operatingMode: 'Running' as const } }
  const plan = planSandbox({ ...suspended, sandbox: resumed }, noon)
  t.same(kinds(plan), ['createPod'])
  t.equal(findCondition(statusOf(plan)?.conditions, 'Suspended'), undefined)
})

t.test('6: the first words about a sandbox being set up wait for company, at most a second', async (t) => {
  const fresh = planSandbox(aView(), noon)
  t.same([fresh.status, fresh.defers, fresh.again?.afterMs], [{ kind: 'later' }, true, 1_000])
  const sandbox = aSandbox()
  const scheduled = aPod(sandbox, { spec: { containers: [], nodeName: 'node-1' }, status: { phase: 'Pending' } })
  const later = aView({ sandbox, pods: [scheduled], ownPodUid: 'pod-uid', deferredSince: noon })
  t.same(planSandbox(later, noon + 400).again?.afterMs, 600)
  t.match(statusOf(planSandbox(later, noon + 1_000)), { phase: 'Pending', nodeName: 'node-1', podUID: 'pod-uid' })
})

t.test('6: becoming ready is one write with everything in it', async (t) => {
  const sandbox = aSandbox({ metadata: { labels: { [labels.setTemplateHash]: 'rev-1' } } })
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)], ownPodUid: 'pod-uid' }), noon)
  t.same(plan.steps, [])
  t.match(plan.status, {
    kind: 'write',
    patch: {
      metadata: { uid: 'box-uid', resourceVersion: '10' },
      status: {
        phase: 'Running',
        podIPs: ['10.0.0.7'],
        nodeName: 'node-1',
        podUID: 'pod-uid',
        selector: /^agents.x-k8s.io\/sandbox-name-hash=[0-9a-f]{8}$/,
        updateRevision: 'rev-1',
        conditions: [{ type: 'Ready', status: 'True', reason: 'DependenciesReady' }, { type: 'PodScheduled' }],
      },
    },
  })
})

t.test('6: a mere change of generation waits a second and is then written', async (t) => {
  const view = atRest(aSandbox())
  const bumped = { ...view, sandbox: { ...view.sandbox, metadata: { ...view.sandbox.metadata, generation: 2 } } }
  const plan = planSandbox(bumped, noon)
  t.same([plan.status.kind, plan.again?.afterMs], ['later', 1_000])
  t.equal(readyOf(overdue(bumped))?.observedGeneration, 2)
})

t.test('6: a Pod that is drained or gone is told at once, without addresses', async (t) => {
  const sandbox = aSandbox()
  for (const pods of [[aReadyPod(sandbox, { deletionTimestamp: at(1) })], []]) {
    const plan = planSandbox({ ...atRest(sandbox), pods }, noon + 1_000)
    t.match(readyOf(plan), { status: 'False', reason: 'DependenciesNotReady', lastTransitionTime: at(1) })
    t.match(plan.status, { patch: { status: { podIPs: null } } })
  }
})

t.test('6: an address is told at once, before the Pod is ready', async (t) => {
  const sandbox = aSandbox()
  const status = { ...running, conditions: [{ type: 'Ready', status: 'False' }] }
  const plan = planSandbox(aView({ sandbox, pods: [aPod(sandbox, { status })], ownPodUid: 'pod-uid' }), noon)
  t.same(statusOf(plan)?.podIPs, ['10.0.0.7'])
  t.equal(readyOf(plan)?.status, 'False')
})

t.test('6: a sandbox that is not ready is looked at again though no event comes', async (t) => {
  const sandbox = aSandbox()
  const view = settled(aView({ sandbox, pods: [aPod(sandbox)], ownPodUid: 'pod-uid' }))
  t.equal(planSandbox(view, noon).again?.afterMs, 30_000)
  t.equal(planSandbox(atRest(sandbox), noon).again, undefined, 'a ready one is not')
})

t.test('6: a Pod in our name that caches do not hold is looked for sooner, until it is gone', async (t) => {
  const sandbox = aMember()
  for (const metadata of [{ labels: {} }, { labels: {}, deletionTimestamp: at(0) }]) {
    const view = settled(aView({ sandbox, pods: [aPod(sandbox, { metadata })] }))
    t.equal(planSandbox(view, noon).again?.afterMs, 2_000)
  }
  const going = settled(aView({ sandbox, pods: [aPod(sandbox, { metadata: { deletionTimestamp: at(0) } })] }))
  t.equal(planSandbox(going, noon).again?.afterMs, 30_000, 'an event tells')
})

t.test('6: conditions of others are kept', async (t) => {
  const theirs = { type: 'Audited', status: 'True', reason: 'R', message: '', lastTransitionTime: at(0) } as const
  const sandbox = aSandbox({ status: { conditions: [theirs] } })
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)], ownPodUid: 'pod-uid' }), noon)
  t.match(findCondition(statusOf(plan)?.conditions, 'Audited'), theirs)
})
