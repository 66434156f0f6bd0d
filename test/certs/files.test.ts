import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { createAuthority, servingLifeMs, signServing } from '../../certs/authority.ts'
import { createFileCertificates } from '../../certs/files.ts'
import type { KeyPair } from '../../certs/pem.ts'

const clock = new ManualClock()
const log = pino({ level: 'silent' })
const authority = await createAuthority(clock.now())
const one = await signServing(authority, ['x'], clock.now())
const two = await signServing(authority, ['x'], clock.now())

async function put(directory: string, { cert, key }: Partial<KeyPair>): Promise<void> {
  if (cert !== undefined) await writeFile(join(directory, 'tls.crt'), cert)
  if (key !== undefined) await writeFile(join(directory, 'tls.key'), key)
}

t.test('a matching pair is taken over once, a changed one again', async (t) => {
  const directory = t.testdir()
  const files = createFileCertificates({ directory, clock, log })
  const seen: KeyPair[] = []
  files.onChange((pair) => seen.push(pair))
  await put(directory, one)
  await files.read()
  await files.read()
  t.strictSame(seen, [one])
  t.match(files.state, { isReady: true })
  await put(directory, two)
  await files.read()
  t.strictSame(seen, [one, two])
  t.strictSame(files.current, two)
})

t.test('while the two files do not match, the pair at hand is served', async (t) => {
  const directory = t.testdir()
  const files = createFileCertificates({ directory, clock, log })
  await put(directory, one)
  await files.read()
  await put(directory, { cert: two.cert })
  await files.read()
  t.strictSame(files.current, one)
  t.match(files.state, { isReady: true, because: /do not match/ })
  await put(directory, { key: 'half a k' })
  await files.read()
  t.strictSame(files.current, one)
  await put(directory, two)
  await files.read()
  t.strictSame(files.current, two)
  t.match(files.state, { isReady: true, because: 'it is valid' })
})

t.test('without readable files there is no certificate, and the state says why', async (t) => {
  const files = createFileCertificates({ directory: join(t.testdir(), 'absent'), clock, log })
  await files.read()
  t.equal(files.current, undefined)
  t.match(files.state, { isReady: false, because: /ENOENT/ })
})

t.test('an expired certificate is not ready', async (t) => {
  const directory = t.testdir()
  const later = new ManualClock(clock.now())
  const files = createFileCertificates({ directory, clock: later, log })
  await put(directory, one)
  await files.read()
  later.jump(servingLifeMs)
  t.match(files.state, { isReady: false })
})

t.test('run sees a new pair at the next reading even when no watch tells of it', async (t) => {
  // A mounted Secret: the directory holds links into another one, which is exchanged as a whole.
  const directory = t.testdir()
  const data = async (name: string, pair: KeyPair) => {
    await mkdir(join(directory, name))
    await put(join(directory, name), pair)
    await symlink(name, join(directory, 'new'))
    await rename(join(directory, 'new'), join(directory, '..data'))
  }
  await data('first', one)
  await symlink('..data/tls.crt', join(directory, 'tls.crt'))
  await symlink('..data/tls.key', join(directory, 'tls.key'))
  const time = new ManualClock(clock.now())
  const files = createFileCertificates({ directory, clock: time, log })
  const pairs = [Promise.withResolvers<KeyPair>(), Promise.withResolvers<KeyPair>()]
  let taken = 0
  files.onChange((pair) => pairs[taken++]?.resolve(pair))
  const end = new AbortController()
  const ran = files.run(end.signal)
  t.strictSame(await pairs[0]?.promise, one)
  await data('second', two)
  await time.advance(10_000)
  t.strictSame(await pairs[1]?.promise, two)
  end.abort()
  await ran
  t.equal(time.pendingTimers, 0)
})
