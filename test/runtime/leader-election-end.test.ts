import { pino } from 'pino'
import t from 'tap'
import { createLeaderElection, type Lead } from '../../src/runtime/leader-election.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { compete, untilStopped } from './election-harness.ts'
import { LeaseServer } from './lease-server.ts'

t.test('a stopped leader releases the lease, and another takes it at its next look', async (t) => {
  const clock = new ManualClock()
  const leader = compete({ clock })
  await clock.advance(0)
  const heir = compete({ server: leader.server, clock, identity: 'heir' })
  await clock.advance(9_000)
  leader.stop.abort()
  await clock.advance(0)
  t.equal(leader.ended(), 'resolved')
  t.equal(leader.election.isLeader, false)
  t.match(leader.server.lease?.spec, { holderIdentity: '', leaseDurationSeconds: 1 })
  await clock.advance(2_000)
  t.equal(heir.election.isLeader, true)
  t.match(leader.server.lease?.spec, { holderIdentity: 'heir', leaseDurationSeconds: 15, leaseTransitions: 1 })
  t.strictSame(leader.changes, [true, false])
  heir.stop.abort()
  await heir.running
})

t.test('the lease is kept, and writes allowed, until the work has come to its end', async (t) => {
  const clock = new ManualClock()
  const lead: Lead = async (signal) => {
    await untilStopped(signal)
    await clock.sleep(20_000)
  }
  const { election, server, stop, ended } = compete({ clock, lead })
  await clock.advance(1_000)
  stop.abort()
  await clock.advance(19_999)
  t.equal(ended(), undefined)
  t.equal(election.canWrite(), true)
  t.equal(server.lease?.spec?.holderIdentity, 'me')
  await clock.advance(1)
  t.equal(ended(), 'resolved')
  t.equal(server.lease?.spec?.holderIdentity, '')
})

t.test('a leader that cannot renew stops after 10 s, well before another can lead', async (t) => {
  for (const fate of ['unreachable', 'hang'] as const) {
    const clock = new ManualClock()
    const leader = compete({ clock })
    await clock.advance(0)
    const heir = compete({ server: leader.server, clock, identity: 'heir' })
    await clock.advance(4_000)
    leader.fate.now = fate
    await clock.advance(9_999)
    t.equal(leader.election.isLeader, true, fate)
    await clock.advance(1)
    t.equal(leader.election.isLeader, false, fate)
    t.equal(leader.election.canWrite(), false, fate)
    t.strictSame(leader.changes, [true, false])
    t.equal(heir.election.isLeader, false)
    await clock.advance(6_000)
    t.equal(heir.election.isLeader, true)
    leader.fate.now = 'ok'
    await clock.advance(60_000)
    t.equal(leader.election.isLeader, false, 'and competes again without taking it away')
    for (const { stop, running } of [leader, heir]) {
      stop.abort()
      await running
    }
  }
})

t.test('two failed renewals in a row are no loss', async (t) => {
  const { clock, election, fate, stop, running, changes } = compete()
  await clock.advance(4_000)
  fate.now = 'hang'
  await clock.advance(4_000)
  fate.now = 'lost-reply'
  await clock.advance(3_500)
  fate.now = 'ok'
  await clock.advance(60_000)
  t.equal(election.isLeader, true)
  t.strictSame(changes, [true])
  stop.abort()
  await running
})

t.test('writing ends 3 s before the lease does, even in a process that did not run meanwhile', async (t) => {
  const { clock, election, fate, stop, running } = compete()
  await clock.advance(2_000)
  // The process is stopped: time passes, and no timer runs.
  let frozenMs = 0
  const monotonic = clock.monotonic.bind(clock)
  clock.monotonic = () => monotonic() + frozenMs
  frozenMs = 11_999
  t.equal(election.canWrite(), true)
  frozenMs = 12_000
  t.equal(election.canWrite(), false)
  fate.now = 'unreachable'
  await clock.advance(2_000)
  t.equal(election.isLeader, false)
  stop.abort()
  await running
})

t.test('a lease that another took while our last write was uncertain is not released', async (t) => {
  const { clock, server, fate, stop, running, election } = compete()
  await clock.advance(1_000)
  fate.now = 'unreachable'
  await clock.advance(2_000)
  server.lease = { metadata: { name: 'lease', resourceVersion: 'y' }, spec: { holderIdentity: 'usurper' } }
  fate.now = 'ok'
  t.equal(election.isLeader, true, 'not noticed yet')
  stop.abort()
  await running
  t.equal(server.lease.spec?.holderIdentity, 'usurper')
})

t.test('the lease counts from when a renewal was sent, not from when its reply came', async (t) => {
  const clock = new ManualClock()
  const server = new LeaseServer()
  const client = server.client()
  const { create } = client
  client.create = async (...request) => {
    const stored = await create(...request)
    await clock.sleep(4_000)
    client.replace = () => clock.sleep(Infinity) as Promise<never>
    return stored
  }
  const log = pino({ level: 'silent' })
  const election = createLeaderElection({ client, namespace: 'ns', name: 'lease', identity: 'me', clock, log })
  void election.run(untilStopped, new AbortController().signal)
  await clock.advance(4_000)
  t.equal(election.isLeader, true)
  await clock.advance(7_999)
  t.equal(election.canWrite(), true)
  await clock.advance(1)
  t.equal(election.canWrite(), false)
})

t.test('when the work ends by itself the lease is released and the run ends with it', async (t) => {
  const outcomes = { resolved: async () => {}, rejected: () => Promise.reject(new Error('broken')) }
  for (const [outcome, lead] of Object.entries(outcomes)) {
    const { clock, server, ended } = compete({ lead })
    await clock.advance(5_000)
    t.equal(ended(), outcome)
    t.equal(server.lease?.spec?.holderIdentity, '')
    t.equal(clock.pendingTimers, 0)
  }
})

t.test('work that fails because it is stopped ends neither the process nor its candidacy', async (t) => {
  const lead: Lead = async (signal) => {
    await untilStopped(signal)
    signal.throwIfAborted()
  }
  const { clock, fate, election, stop, running, ended, changes } = compete({ lead })
  await clock.advance(1_000)
  fate.now = 'unreachable'
  await clock.advance(20_000)
  t.equal(election.isLeader, false)
  fate.now = 'ok'
  await clock.advance(20_000)
  t.equal(election.isLeader, true)
  stop.abort()
  await running
  t.equal(ended(), 'resolved')
  t.strictSame(changes, [true, false, true, false])
})
