import { pino } from 'pino'
import { createLeaderElection, type Lead } from '../../src/runtime/leader-election.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { type Fate, LeaseServer } from './lease-server.ts'

/** Leads until it is told to stop. */
export const untilStopped: Lead = (signal) =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

interface Competitor {
  server?: LeaseServer
  clock?: ManualClock
  identity?: string
  lead?: Lead
}

/** A process that competes for the lease; `fate.now` says what becomes of its requests. */
export function compete({
  server = new LeaseServer(),
  clock = new ManualClock(),
  identity = 'me',
  lead,
}: Competitor = {}) {
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
