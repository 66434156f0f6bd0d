import t from 'tap'
import type { Sandbox } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { planSandbox, type SandboxPlan } from '../../src/planning/plan-sandbox.ts'
import type { SandboxView } from '../../src/planning/sandbox-view.ts'
import {
  aClaimed,
  aMember,
  aPod,
  aReadyPod,
  aSandbox,
  at,
  atRest,
  aView,
  dataTemplate,
  noon,
  serviceOf,
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

t.test('3: volume claims are created before the Pod', async (t) => {
  const sandbox = aSandbox({ spec: { volumeClaimTemplates: [dataTemplate] } })
  t.same(kinds(planSandbox(aView({ sandbox }), noon)), ['createVolumeClaim', 'createPod'])
})

t.test("3: the Pod is not created on someone else's volume claim, and the status names it", async (t) => {
  const sandbox = aSandbox({ spec: { volumeClaimTemplates: [dataTemplate] } })
  const volumeClaims = new Map([['data-box', volumeClaimOf(sandbox, { ownerReferences: [] })]])
  const plan = overdue(aView({ sandbox, volumeClaims }))
  t.same(plan.steps, [])
  t.match(readyOf(plan), { status: 'False', reason: 'DependenciesNotReady', message: /PersistentVolumeClaim data-box/ })
  t.equal(plan.again?.afterMs, 2_000)
})

t.test('4: the Service is created when asked for, and the sandbox is not ready without it', async (t) => {
  const sandbox = aSandbox({ spec: { service: true } })
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)], ownPodUid: 'pod-uid' }), noon)
  t.same(kinds(plan), ['createService'])
  t.match(readyOf(plan), { status: 'False', message: /Service does not exist/ })
})

t.test('4: a Service with other ports or another selector is put right', async (t) => {
  const sandbox = aSandbox({ spec: { service: true } })
  const service = { ...serviceOf(sandbox), spec: { selector: { app: 'other' }, ports: [] } }
  const plan = planSandbox(atRest(sandbox, { service }), noon)
  t.match(plan.steps, [{ kind: 'patchService', patch: { spec: { selector: { app: null } } } }])
})

t.test('4: service: false removes ours only', async (t) => {
  const sandbox = aSandbox({ spec: { service: false } })
  t.same(kinds(planSandbox(atRest(sandbox, { service: serviceOf(sandbox) }), noon)), ['deleteService'])
  const foreign = serviceOf(sandbox, { ownerReferences: [] })
  t.same(kinds(planSandbox(atRest(sandbox, { service: foreign }), noon)), [])
})

t.test('4: an unset service leaves one that is there as it is, and names it in the status', async (t) => {
  const sandbox = aSandbox()
  const service = { ...serviceOf(sandbox), spec: { selector: {}, ports: [] } }
  const view = atRest(sandbox, { service })
  t.same(planSandbox(view, noon).steps, [])
  t.equal(view.sandbox.status?.service, 'box')
  t.equal(view.sandbox.status?.serviceFQDN, 'box.ns.svc.cluster.local')
})

t.test("4: someone else's Service keeps the sandbox from being ready, not the Pod from being made", async (t) => {
  const sandbox = aSandbox({ spec: { service: true } })
  const plan = overdue(aView({ sandbox, service: serviceOf(sandbox, { ownerReferences: [strangerOwner] }) }))
  t.same(kinds(plan), ['createPod'])
  t.match(readyOf(plan)?.message, /Service box exists .* controlled by ReplicaSet web-1/)
})

t.test('5: two living Pods are reported, and neither is touched', async (t) => {
  const sandbox = aSandbox()
  const other = aReadyPod(sandbox, { name: 'box-2', uid: 'other-uid' })
  const plan = planSandbox(atRest(sandbox, { pods: [aReadyPod(sandbox), other] }), noon)
  t.same(plan.steps, [])
  const before = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox), other] }), noon)
  t.match(readyOf(before), { reason: 'MultiplePods', message: /box, box-2/ })
})

t.test("5: someone else's Pod of the name is never touched, and the status names it", async (t) => {
  const sandbox = aSandbox()
  for (const ownerReferences of [[], [strangerOwner]]) {
    const plan = overdue(aView({ sandbox, pods: [aReadyPod(sandbox, { ownerReferences })] }))
    t.same(plan.steps, [])
    t.match(readyOf(plan), { status: 'False', message: /Pod box exists and is not this sandbox's/ })
    t.same(statusOf(plan)?.podIPs, undefined, 'its address is not published')
  }
})

t.test('5: a sandbox recreated under its name waits for the Pod of its predecessor', async (t) => {
  const predecessor = aSandbox({ metadata: { uid: 'old-uid' } })
  const plan = overdue(aView({ pods: [aReadyPod(predecessor, { deletionTimestamp: at(1) })] }))
  t.same(plan.steps, [])
  t.match(readyOf(plan)?.message, /Waiting for Pod box/)
})

t.test('5: a stand-alone sandbox takes over a Pod that was offered to it', async (t) => {
  const sandbox = aSandbox()
  const offered = aReadyPod(sandbox, { ownerReferences: [], labels: { [labels.adoptable]: 'true' } })
  const [step] = planSandbox(aView({ sandbox, pods: [offered] }), noon).steps
  t.match(step, {
    kind: 'adopt',
    part: 'Pod',
    patch: {
      metadata: { uid: 'pod-uid', resourceVersion: '20', ownerReferences: [{ uid: 'box-uid', controller: true }] },
    },
  })
})

t.test(
  '5: an offered Pod is not taken over when it is controlled, going, or the sandbox is not stand-alone',
  async (t) => {
    const offer = { ownerReferences: [], labels: { [labels.adoptable]: 'true' } }
    const views: Record<string, SandboxView> = {
      controlled: aView({ pods: [aReadyPod(aSandbox(), { ...offer, ownerReferences: [strangerOwner] })] }),
      going: aView({ pods: [aReadyPod(aSandbox(), { ...offer, deletionTimestamp: at(0) })] }),
      member: aView({ sandbox: aMember(), pods: [aReadyPod(aMember(), offer)] }),
      claimed: aView({ sandbox: aClaimed(), pods: [aReadyPod(aClaimed(), offer)] }),
      orphan: aView({
        sandbox: aMember({ metadata: { ownerReferences: [] } }),
        pods: [aReadyPod(aMember(), offer)],
      }),
    }
    for (const [why, view] of Object.entries(views)) t.same(planSandbox(view, noon).steps, [], why)
  },
)

t.test('5: stock of a pool whose Pod nothing proves to be ours is given another one', async (t) => {
  const sandbox = aMember()
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)] }), noon)
  t.match(plan.steps, [{ kind: 'deletePod', because: /nothing proves/ }])
})

t.test('5: the proof is the UID of the reply to our POST, or of the status', async (t) => {
  const sandbox = aMember()
  const byReply = aView({ sandbox, pods: [aReadyPod(sandbox)], ownPodUid: 'pod-uid' })
  t.same(planSandbox(byReply, noon).steps, [])
  const byStatus = aView({ sandbox: { ...sandbox, status: { podUID: 'pod-uid' } }, pods: [aReadyPod(sandbox)] })
  t.same(planSandbox(byStatus, noon).steps, [])
})

t.test('5: an unproven Pod of a claimed sandbox is replaced only if its user never saw it', async (t) => {
  const sandbox = aClaimed()
  t.same(kinds(planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)] }), noon)), ['deletePod'])
  const shown = withStatus(sandbox, 'DependenciesReady', 'True')
  t.same(kinds(planSandbox(aView({ sandbox: shown, pods: [aReadyPod(sandbox)] }), noon)), [])
  const hasAddress = { ...sandbox, status: { podIPs: ['10.0.0.7'] } }
  t.same(kinds(planSandbox(aView({ sandbox: hasAddress, pods: [aReadyPod(sandbox)] }), noon)), [])
})

t.test('5: an unproven Pod of a stand-alone sandbox is kept, and its UID is not published', async (t) => {
  const sandbox = aSandbox()
  const plan = planSandbox(aView({ sandbox, pods: [aReadyPod(sandbox)] }), noon)
  t.same(plan.steps, [])
  t.equal(readyOf(plan)?.status, 'True')
  t.equal(statusOf(plan)?.podUID, undefined)
})

t.test('5: a failed Pod is left for inspection', async (t) => {
  const sandbox = aSandbox()
  const pods = [aPod(sandbox, { status: { phase: 'Failed', reason: 'Evicted' } })]
  const plan = planSandbox(aView({ sandbox, pods, ownPodUid: 'pod-uid' }), noon + 60_000)
  t.same(plan.steps, [])
  t.match(readyOf(plan), { reason: 'PodFailed', message: /Evicted/ })
  t.match(findCondition(statusOf(plan)?.conditions, 'Finished'), { status: 'True', reason: 'PodFailed' })
  t.equal(statusOf(plan)?.phase, 'Failed')
})

t.test(
  '5: with recreateFailedPods a failed Pod is replaced, but not sooner than 10 s after its creation',
  async (t) => {
    const config = { ...defaultConfig, sandboxes: { ...defaultConfig.sandboxes, recreateFailedPods: true } }
    const sandbox = aClaimed()
    const pods = [aPod(sandbox, { status: { phase: 'Failed' } })]
    const view = aView({ sandbox, pods, ownPodUid: 'pod-uid', config })
    const early = planSandbox(view, noon + 4_000)
    t.same(early.steps, [])
    t.equal(early.again?.afterMs, 6_000)
    t.same(kinds(planSandbox(view, noon + 10_000)), ['deletePod'])
    const memberPods = [aPod(aMember(), { status: { phase: 'Failed' } })]
    const member = aView({ sandbox: aMember(), pods: memberPods, ownPodUid: 'pod-uid', config })
    t.same(planSandbox(member, noon + 60_000).steps, [], 'a pool replaces the whole member')
  },
)

t.test('5: a Pod that is absent is created, one that is going is waited for', async (t) => {
  t.same(kinds(planSandbox(aView(), noon)), ['createPod'])
  const sandbox = aSandbox()
  const leaving = atRest(sandbox, { pods: [aReadyPod(sandbox, { deletionTimestamp: at(1) })] })
  t.same(planSandbox(leaving, noon).steps, [])
})

t.test('5: after an adoption one patch drops the pool marks and sets the claim marks', async (t) => {
  const given = { annotations: { [annotations.safeToEvict]: 'true' } }
  const member = aMember({ spec: { podTemplate: { metadata: given, spec: { containers: [] } } } })
  const adopted = aClaimed({
    spec: { podTemplate: { metadata: { labels: { 'sandbox.users.io/run': '7' } }, spec: { containers: [] } } },
  })
  const plan = planSandbox(atRest(adopted, { pods: [aReadyPod(member)] }), noon)
  t.same(plan.steps.length, 1)
  t.match(plan.steps[0], {
    kind: 'patchPod',
    patch: {
      metadata: {
        uid: 'pod-uid',
        labels: {
          [labels.warmPool]: null,
          [labels.claimUid]: 'claim-uid',
          [labels.createdBy]: 'sdk',
          'sandbox.users.io/run': '7',
        },
        annotations: { [annotations.safeToEvict]: null, [annotations.propagatedLabels]: 'sandbox.users.io/run' },
      },
    },
  })
})

t.test('5: while claims wait, the patch of a Pod in use waits too, at most a second', async (t) => {
  const view = { ...atRest(aClaimed(), { pods: [aReadyPod(aMember())] }), claimsAreWaiting: true }
  const first = planSandbox(view, noon)
  t.same([first.steps, first.defers, first.again?.afterMs], [[], true, 100])
  t.same(kinds(planSandbox({ ...view, deferredSince: noon }, noon + 999)), [])
  t.same(kinds(planSandbox({ ...view, deferredSince: noon }, noon + 1_000)), ['patchPod'])
  t.same(kinds(planSandbox({ ...view, claimsAreWaiting: false }, noon)), ['patchPod'])
})

t.test('5: a refused creation is said, and not repeated before its time', async (t) => {
  const refusal = { reason: 'QuotaExceeded', message: 'exceeded quota: small', retryAt: noon + 4_000 }
  const plan = planSandbox(aView({ refusal }), noon)
  t.same(plan.steps, [])
  t.match(readyOf(plan), { reason: 'QuotaExceeded', message: /small/ })
  t.equal(plan.again?.afterMs, 4_000)
  t.same(kinds(planSandbox(aView({ refusal }), noon + 4_000)), ['createPod'])
})

t.test('5: an old refusal means nothing once there is nothing left to create', async (t) => {
  const refusal = { reason: 'QuotaExceeded', message: '', retryAt: noon + 4_000 }
  t.same(planSandbox({ ...atRest(aSandbox()), refusal }, noon).status, { kind: 'unchanged' })
})
