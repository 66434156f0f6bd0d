import t from 'tap'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { compete } from './election-harness.ts'
import { LeaseServer } from './lease-server.ts'

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
