import t from 'tap'
import type { Sandbox, SandboxStatus } from '../../src/api/kinds.ts'
import { memberState, notReadySince } from '../../src/planning/member-state.ts'
import { memberTrouble } from '../../src/planning/member-trouble.ts'
import { minute, noon, pendingPod, podSpec, second, unschedulablePod, waitingPod } from '../support/pool-fixtures.ts'

const at = (ms: number) => new Date(ms).toISOString()
type Conditions = NonNullable<SandboxStatus['conditions']>

function condition(type: string, status: 'True' | 'False', reason: string, ms = noon): Conditions[number] {
  return { type, status, reason, message: `It is ${reason}.`, lastTransitionTime: at(ms) }
}

function sandbox(status: SandboxStatus = {}, spec: Partial<Sandbox['spec']> = {}): Sandbox {
  return {
    metadata: { name: 'a', creationTimestamp: at(noon - minute) },
    spec: { podTemplate: { spec: podSpec }, ...spec },
    status,
  }
}

const ready = condition('Ready', 'True', 'DependenciesReady')
const withIp = { podIPs: ['10.0.0.1'] }

t.test('states', async (t) => {
  const rows: [string, Sandbox, string][] = [
    ['without a status', { ...sandbox(), status: {} }, 'creating'],
    ['Ready with an address', sandbox({ conditions: [ready], ...withIp }), 'available'],
    ['Ready without an address', sandbox({ conditions: [ready] }), 'creating'],
    ['Ready with an empty list of addresses', sandbox({ conditions: [ready], podIPs: [] }), 'creating'],
    [
      'not Ready, with an address',
      sandbox({ conditions: [condition('Ready', 'False', 'DependenciesNotReady')], ...withIp }),
      'creating',
    ],
    ['Finished', sandbox({ conditions: [ready, condition('Finished', 'True', 'PodSucceeded')], ...withIp }), 'dead'],
    [
      'Finished taken back',
      sandbox({ conditions: [ready, condition('Finished', 'False', 'PodRunning')], ...withIp }),
      'available',
    ],
    ['phase Failed', sandbox({ phase: 'Failed' }), 'dead'],
    ['phase Succeeded', sandbox({ phase: 'Succeeded' }), 'dead'],
    ['not Ready since its Pod failed', sandbox({ conditions: [condition('Ready', 'False', 'PodFailed')] }), 'dead'],
    ['marked expired', sandbox({ conditions: [condition('Ready', 'False', 'SandboxExpired')] }), 'dead'],
    ['with a time to end', sandbox({ conditions: [ready], ...withIp }, { shutdownTime: at(noon + minute) }), 'dead'],
    [
      'suspended',
      sandbox({ conditions: [condition('Ready', 'False', 'SandboxSuspended')] }, { operatingMode: 'Suspended' }),
      'paused',
    ],
  ]
  for (const [what, object, state] of rows) t.equal(memberState(object), state, what)
})

t.test('not Ready counts from the later of creation and the loss of Ready', async (t) => {
  t.equal(notReadySince(sandbox()), noon - minute)
  const lost = condition('Ready', 'False', 'DependenciesNotReady', noon - second)
  t.equal(notReadySince(sandbox({ conditions: [lost] })), noon - second)
  const early = condition('Ready', 'False', 'DependenciesNotReady', noon - 2 * minute)
  t.equal(notReadySince(sandbox({ conditions: [early] })), noon - minute)
})

t.test('trouble', async (t) => {
  t.test('a Pod on its ordinary way has none', async (t) => {
    t.equal(memberTrouble(sandbox(), undefined), undefined)
    t.equal(memberTrouble(sandbox(), pendingPod({ phase: 'Pending' })), undefined)
    for (const wait of ['ContainerCreating', 'PodInitializing'])
      t.equal(memberTrouble(sandbox(), waitingPod(wait)), undefined)
    const waiting = sandbox({ conditions: [condition('Ready', 'False', 'DependenciesNotReady')] })
    t.equal(memberTrouble(waiting, undefined), undefined)
  })

  t.test("a container's own reason is named, with one name for a pull that fails", async (t) => {
    t.match(memberTrouble(sandbox(), waitingPod('ErrImagePull')), {
      reason: 'ImagePullBackOff',
      isWaitingForPlace: false,
    })
    t.match(memberTrouble(sandbox(), waitingPod('CrashLoopBackOff')), {
      reason: 'CrashLoopBackOff',
      message: /main.*nope:0/,
    })
  })

  t.test('a Pod without a place is waiting for one, by its own word or as its Sandbox mirrors it', async (t) => {
    t.match(memberTrouble(sandbox(), unschedulablePod), { reason: 'Unschedulable', isWaitingForPlace: true })
    const mirrored = sandbox({ conditions: [condition('PodScheduled', 'False', 'Unschedulable')] })
    t.match(memberTrouble(mirrored, undefined), { reason: 'Unschedulable', isWaitingForPlace: true })
    const scheduled = sandbox({ conditions: [condition('PodScheduled', 'True', 'Scheduled')] })
    t.equal(memberTrouble(scheduled, undefined), undefined)
    const silent = pendingPod({ conditions: [{ type: 'PodScheduled', status: 'False' }] })
    t.match(memberTrouble(sandbox(), silent), { reason: 'Unschedulable', isWaitingForPlace: true })
  })

  t.test('a scheduling gate is named', async (t) => {
    const gated = pendingPod({ phase: 'Pending' }, { schedulingGates: [{ name: 'example.com/quota' }] })
    t.match(memberTrouble(sandbox(), gated), {
      reason: 'SchedulingGated',
      message: /example.com\/quota/,
      isWaitingForPlace: true,
    })
  })

  t.test('what the Sandbox itself says is forwarded', async (t) => {
    const refused = sandbox({ conditions: [condition('Ready', 'False', 'QuotaExceeded')] })
    t.match(memberTrouble(refused, undefined), { reason: 'QuotaExceeded', message: 'It is QuotaExceeded.' })
  })
})
