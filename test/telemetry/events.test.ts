import { pino } from 'pino'
import t from 'tap'
import type { Event } from '../../src/api/core.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import { KubeError } from '../../src/kube/errors.ts'
import type { KubeErrorCode, KubeErrorDetails } from '../../src/kube/errors.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createEventRecorder } from '../../src/telemetry/events.ts'

const claim = (name = 'a', uid = `uid-${name}`): KubeObject => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxClaim',
  metadata: { namespace: 'default', name, uid },
})

function fault(code: KubeErrorCode, details: Partial<KubeErrorDetails> = {}): KubeError {
  return new KubeError(code, `it was ${code}`, { status: 0, ...details })
}

/** Events as an API server keeps them. `faults` are thrown by the next writes, one each. */
function start() {
  const stored = new Map<string, Event>()
  const writes: string[] = []
  const faults: (KubeError | undefined)[] = []
  const logged: Record<string, unknown>[] = []
  const next = (verb: string, name: string) => {
    writes.push(`${verb} ${name}`)
    const thrown = faults.shift()
    if (thrown) throw thrown
  }
  const client: Pick<KubeClient, 'create' | 'get' | 'patch'> = {
    async create(_resource, object) {
      const name = object.metadata.name ?? ''
      next('create', name)
      if (stored.has(name)) throw fault('AlreadyExists')
      stored.set(name, object as unknown as Event)
      return object
    },
    async get(_resource, { name }) {
      const found = stored.get(name)
      if (!found) throw fault('NotFound')
      return found as never
    },
    async patch(_resource, { name }, patch) {
      next('patch', name)
      const found = stored.get(name)
      if (!found) throw fault('NotFound')
      stored.set(name, { ...found, ...(patch as object) })
      return found as never
    },
  }
  const clock = new ManualClock()
  const log = pino({ base: null }, { write: (text) => void logged.push(JSON.parse(text) as Record<string, unknown>) })
  const options = { client: client as KubeClient, component: 'sandgate', clock, log }
  return {
    recorder: createEventRecorder(options),
    another: () => createEventRecorder(options),
    stored,
    writes,
    faults,
    logged,
    clock,
  }
}

t.test('an event is written shortly after it was recorded, not at once', async (t) => {
  const { recorder, stored, writes, clock } = start()
  recorder.record(claim(), 'Warning', 'TemplateNotFound', 'there is no template x')
  await clock.advance(499)
  t.same(writes, [])
  await clock.advance(1)
  const [event] = stored.values()
  t.match(event, {
    metadata: { namespace: 'default', name: /^a\.[0-9a-f]{16}$/ },
    involvedObject: {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      namespace: 'default',
      name: 'a',
      uid: 'uid-a',
    },
    type: 'Warning',
    reason: 'TemplateNotFound',
    message: 'there is no template x',
    count: 1,
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    source: { component: 'sandgate' },
  })
  t.equal(clock.pendingTimers, 0)
})

t.test('repeats before the first write are one write, later ones a patch each ten seconds', async (t) => {
  const { recorder, stored, writes, clock } = start()
  for (let i = 0; i < 100; i++) recorder.record(claim(), 'Normal', 'Bound', 'bound to b')
  await clock.advance(500)
  t.equal(writes.length, 1)
  t.match([...stored.values()], [{ count: 100 }])

  for (let second = 0; second < 20; second++) {
    recorder.record(claim(), 'Normal', 'Bound', 'bound to b')
    await clock.advance(1_000)
  }
  t.equal(writes.length, 3)
  t.match([...stored.values()], [{ count: 120, firstTimestamp: '2026-01-01T00:00:00Z' }])
  t.equal(clock.pendingTimers, 0)
})

t.test('what differs in object, type, reason or message is another event', async (t) => {
  const { recorder, stored, clock } = start()
  recorder.record(claim('a'), 'Normal', 'Bound', 'x')
  recorder.record(claim('b'), 'Normal', 'Bound', 'x')
  recorder.record(claim('a', 'recreated'), 'Normal', 'Bound', 'x')
  recorder.record(claim('a'), 'Warning', 'Bound', 'x')
  recorder.record(claim('a'), 'Normal', 'Ready', 'x')
  recorder.record(claim('a'), 'Normal', 'Bound', 'y')
  await clock.advance(500)
  t.equal(stored.size, 6)
})

t.test('a new event does not wait for the repeat of an old one', async (t) => {
  const { recorder, stored, clock } = start()
  recorder.record(claim('a'), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  recorder.record(claim('a'), 'Normal', 'Bound', 'x')
  recorder.record(claim('b'), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  t.same(
    [...stored.values()].map(({ involvedObject }) => involvedObject.name),
    ['a', 'b'],
  )
})

t.test('a burst is written at twenty events a second', async (t) => {
  const { recorder, writes, clock } = start()
  for (let i = 0; i < 50; i++) recorder.record(claim(`c${i}`), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  t.equal(writes.length, 10)
  await clock.advance(1_000)
  t.equal(writes.length, 30)
  await clock.advance(1_000)
  t.equal(writes.length, 50)
})

t.test('an event that another process, or an earlier one, has written is counted on', async (t) => {
  const { recorder, another, stored, clock } = start()
  recorder.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  const restarted = another()
  restarted.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  t.match([...stored.values()], [{ count: 2 }])
})

t.test('an event that the server has forgotten is written anew', async (t) => {
  const { recorder, stored, clock } = start()
  recorder.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  stored.clear()
  recorder.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(10_000)
  t.match([...stored.values()], [{ count: 2 }])
})

t.test('a write that fails for a while is tried again, and what the server asks for is honoured', async (t) => {
  const { recorder, stored, writes, faults, logged, clock } = start()
  faults.push(fault('OutcomeUnknown'), fault('TooManyRequests', { retryAfterMs: 30_000 }))
  recorder.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(500)
  await clock.advance(2_000)
  t.equal(writes.length, 2)
  await clock.advance(29_999)
  t.equal(writes.length, 2)
  await clock.advance(1)
  t.equal(stored.size, 1)
  t.same(logged, [])
})

t.test('a server that does not answer is not asked for each waiting event', async (t) => {
  const { recorder, writes, faults, clock } = start()
  for (let i = 0; i < 5; i++) recorder.record(claim(`c${i}`), 'Normal', 'Bound', 'x')
  faults.push(fault('Unreachable'))
  await clock.advance(500)
  t.equal(writes.length, 1)
})

t.test('an event that cannot be written is given up after five attempts, with one warning', async (t) => {
  const { recorder, writes, faults, logged, clock } = start()
  for (let i = 0; i < 10; i++) faults.push(fault('ServerError'))
  recorder.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(3_600_000)
  t.equal(writes.length, 5)
  t.match(logged, [{ msg: 'event not recorded', event: { namespace: 'default', reason: 'Bound' } }])
  t.equal(logged.length, 1)
})

t.test('a missing permission is told at once', async (t) => {
  const { recorder, writes, faults, logged, clock } = start()
  faults.push(fault('Forbidden', { causes: [] }))
  recorder.record(claim(), 'Normal', 'Bound', 'x')
  await clock.advance(3_600_000)
  t.equal(writes.length, 1)
  t.equal(logged.length, 1)
})

t.test('events of a namespace that ends are dropped in silence', async (t) => {
  const { recorder, writes, faults, logged, clock } = start()
  faults.push(fault('Forbidden', { causes: [{ reason: 'NamespaceTerminating' }] }), fault('NotFound'))
  recorder.record(claim('a'), 'Normal', 'Bound', 'x')
  recorder.record(claim('b'), 'Normal', 'Bound', 'x')
  await clock.advance(3_600_000)
  t.equal(writes.length, 2)
  t.same(logged, [])
})

t.test('at the end everything that waits is written, in one go', async (t) => {
  const { recorder, stored, clock } = start()
  for (let i = 0; i < 50; i++) recorder.record(claim(`c${i}`), 'Normal', 'Bound', 'x')
  await recorder.flush()
  t.equal(stored.size, 50)
  t.equal(clock.pendingTimers, 0)
})

t.test('at the end a server that does not answer is not waited for, and nothing is left running', async (t) => {
  const { recorder, writes, faults, clock } = start()
  for (let i = 0; i < 50; i++) recorder.record(claim(`c${i}`), 'Normal', 'Bound', 'x')
  faults.push(fault('Unreachable'))
  await recorder.flush()
  t.equal(writes.length, 1)
  t.equal(clock.pendingTimers, 0)
})

t.test('a flush during a batch writes nothing twice', async (t) => {
  const { recorder, stored, writes, clock } = start()
  for (let i = 0; i < 30; i++) recorder.record(claim(`c${i}`), 'Normal', 'Bound', 'x')
  const batch = clock.advance(500)
  await Promise.all([recorder.flush(), recorder.flush(), batch])
  t.equal(stored.size, 30)
  t.equal(writes.length, 30)
})

t.test('waiting events are bounded; written ones make room', async (t) => {
  const { recorder, stored } = start()
  for (let i = 0; i < 1_500; i++) recorder.record(claim(`c${i}`), 'Normal', 'Bound', 'x')
  await recorder.flush()
  t.equal(stored.size, 1_000)
  recorder.record(claim('late'), 'Normal', 'Bound', 'x')
  await recorder.flush()
  t.equal(stored.size, 1_001)
})

t.test('an object without a namespace has its events in default', async (t) => {
  const { recorder, stored } = start()
  recorder.record({ kind: 'Namespace', metadata: { name: 'n', uid: 'u' } }, 'Normal', 'Locked', 'x')
  await recorder.flush()
  const [event] = stored.values()
  t.equal(event?.metadata.namespace, 'default')
  t.same(event?.involvedObject, { kind: 'Namespace', name: 'n', uid: 'u' })
})

t.test('long names and messages are cut to what a server takes', async (t) => {
  const { recorder, stored } = start()
  recorder.record(claim('n'.repeat(253)), 'Normal', 'Bound', 'm'.repeat(5_000))
  await recorder.flush()
  const [event] = stored.values()
  t.equal(event?.metadata.name?.length, 253)
  t.equal(event?.message.length, 1_024)
  t.ok(event?.message.endsWith('m…'))
})
