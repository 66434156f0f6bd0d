import { pino } from 'pino'
import t from 'tap'
import { createLeaderElection, type Lead } from '../../src/runtime/leader-election.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { type Fate, LeaseServer } from './lease-server.ts'

/** Leads until it is told to stop. */
const untilStopped: Lead = (signal) =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

interface Competitor {
  server?: LeaseServer
  clock?: ManualClock
  identity?: string
  lead?: Lead
}

function compete({ server = new LeaseServer(), clock = new ManualClock(), identity = 'me', lead }: Competitor = {}) {
  const fate: { now: Fate } = { now: 'ok' }
  const client = server.client(() => fate.now)
  const changes: boolean[] = []
  const election = createLeaderElection({
    client,
    namespace: 'ns',
    name: 'lease',
    identity,
    clock,
    log: pino({ level: 'silent' }),
    onChange: (isLeader) => changes.push(isLeader),
    random: () => 0,
  })
  const stop = new AbortController()
  let ended: 'resolved' | 'rejected' | undefined
  const running = election.run(lead ?? untilStopped, stop.signal).then(
    () => void (ended = 'resolved'),
    () => void (ended = 'rejected'),
  )
  return { server, clock, election, stop, running, fate, client, changes, ended: () => ended }
}

t.test('whoever finds no lease creates it and leads', async (t) => {
  const { clock, election, server, stop, running, client } = compete()
  await clock.advance(0)
  t.equal(election.isLeader, true)
  t.equal(election.canWrite(), true)
  t.strictSame(server.lease, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: 'ns', name: 'lease', resourceVersion: '1' },
    spec: {
      holderIdentity: 'me',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    },
  })
  t.strictSame(client.requests, ['get', 'create'])
  stop.abort()
  await running
})

t.test('the leader renews every two seconds with one request', async (t) => {
  const { clock, election, server, stop, running, client } = compete()
  await clock.advance(60_000)
  t.equal(election.isLeader, true)
  t.equal(client.requests.slice(2).join(), Array.from({ length: 30 }, () => 'replace').join())
  t.match(server.lease?.spec, {
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:01:00.000000Z',
    leaseTransitions: 0,
  })
  stop.abort()
  await running
})

t.test('a lease is taken over 15 s after its last change was seen, whatever its times say', async (t) => {
  const server = new LeaseServer()
  const other = { holderIdentity: 'other', leaseDurationSeconds: 15, renewTime: '1970-01-01T00:00:00.000000Z' }
  server.lease = { metadata: { name: 'lease', resourceVersion: 'x' }, spec: { ...other, leaseTransitions: 4 } }
  const { clock, election, stop, running } = compete({ server })
  await clock.advance(10_000)
  server.lease.spec = { ...server.lease.spec, renewTime: '1970-01-01T00:00:01.000000Z' }
  // Seen at the look at 12 s.
  await clock.advance(16_999)
  t.equal(election.isLeader, false)
  await clock.advance(1_001)
  t.equal(election.isLeader, true)
  t.match(server.lease.spec, { holderIdentity: 'me', leaseTransitions: 5, acquireTime: '2026-01-01T00:00:28.000000Z' })
  stop.abort()
  await running
})

t.test('a jump of the wall clock takes over nothing and loses nothing', async (t) => {
  const clock = new ManualClock()
  const leader = compete({ clock })
  await clock.advance(0)
  const rival = compete({ server: leader.server, clock, identity: 'rival' })
  for (const ms of [3_600_000, -7_200_000]) {
    clock.jump(ms)
    await clock.advance(30_000)
    t.equal(leader.election.canWrite(), true)
    t.equal(rival.election.isLeader, false)
  }
  for (const { stop, running } of [leader, rival]) {
    stop.abort()
    await running
  }
})

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

t.test('a leader that finds another in its place stops at once', async (t) => {
  const { clock, election, server, stop, running, changes } = compete()
  await clock.advance(2_000)
  server.lease = { metadata: { name: 'lease', resourceVersion: 'y' }, spec: { holderIdentity: 'usurper' } }
  await clock.advance(4_000)
  t.equal(election.isLeader, false)
  t.strictSame(changes, [true, false])
  stop.abort()
  await running
  t.equal(server.lease.spec?.holderIdentity, 'usurper', 'and releases nothing')
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

t.test('a candidate that is stopped while it waits leaves the lease alone', async (t) => {
  const clock = new ManualClock()
  const leader = compete({ clock })
  await clock.advance(0)
  const rival = compete({ server: leader.server, clock, identity: 'rival' })
  await clock.advance(1_000)
  rival.stop.abort()
  await rival.running
  t.equal(leader.server.lease?.spec?.holderIdentity, 'me')
  t.notOk(rival.client.requests.includes('replace'))
  leader.stop.abort()
  await leader.running
  t.equal(clock.pendingTimers, 0)
})

t.test('of two that start together one leads', async (t) => {
  const clock = new ManualClock()
  const server = new LeaseServer()
  const both = ['a', 'b'].map((identity) => compete({ server, clock, identity }))
  await clock.advance(30_000)
  t.equal(both.filter(({ election }) => election.isLeader).length, 1)
  for (const { stop, running } of both) {
    stop.abort()
    await running
  }
})
