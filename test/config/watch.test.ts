import { once, EventEmitter } from 'node:events'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Config } from '../../src/config/schema.ts'
import { watchConfig, type WatchedConfig } from '../../src/config/watch.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { systemClock } from '../../src/runtime/clock.ts'

const withReplicas = (maxReplicas: number) => `pools: {maxReplicas: ${maxReplicas}}\n`

async function directoryFor(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sandgate-watch-'))
  t.teardown(() => rm(directory, { recursive: true }))
  return directory
}

/** A watched file whose clock stands still: only `reload` reads it again. */
async function watched(t: Test, text: string) {
  const path = join(await directoryFor(t), 'config.yaml')
  await writeFile(path, text)
  const changes: Config[] = []
  const problems: string[] = []
  const clock = new ManualClock()
  const config = await watchConfig({
    path,
    clock,
    onChange: (next) => changes.push(next),
    onProblem: ({ code }) => problems.push(code),
  })
  t.teardown(() => config.close())
  return { path, config, changes, problems }
}

t.test('a first file that is bad or missing is refused', async (t) => {
  const path = join(await directoryFor(t), 'config.yaml')
  const clock = new ManualClock()
  await t.rejects(watchConfig({ path, clock }), { code: 'ConfigUnreadable' })
  await writeFile(path, 'pols: {}')
  await t.rejects(watchConfig({ path, clock }), { code: 'ConfigInvalid' })
})

t.test('a changed file comes into force, an unchanged one tells nobody', async (t) => {
  const { path, config, changes } = await watched(t, withReplicas(1))
  await config.reload()
  t.equal(changes.length, 0)
  await writeFile(path, withReplicas(2))
  await config.reload()
  t.equal(config.current().pools.maxReplicas, 2)
  t.same(changes, [config.current()])
})

t.test('a bad file keeps the old configuration and is reported once', async (t) => {
  const { path, config, changes, problems } = await watched(t, withReplicas(1))
  await writeFile(path, 'pools: {maxReplicas: many}')
  await config.reload()
  await config.reload()
  t.equal(config.current().pools.maxReplicas, 1)
  t.match(config.problem()?.message, /maxReplicas: "many" must be an integer/)
  t.same([problems, changes], [['ConfigInvalid'], []])
  await writeFile(path, withReplicas(3))
  await config.reload()
  t.equal(config.problem(), undefined)
  t.equal(config.current().pools.maxReplicas, 3)
})

t.test('going back to the text that is in force ends the problem', async (t) => {
  const { path, config } = await watched(t, withReplicas(1))
  await writeFile(path, 'a: 1')
  await config.reload()
  await writeFile(path, withReplicas(1))
  await config.reload()
  t.equal(config.problem(), undefined)
})

t.test('a file that vanishes and returns unchanged is a problem only while it is gone', async (t) => {
  const { path, config, problems } = await watched(t, withReplicas(1))
  await rm(path)
  await config.reload()
  t.equal(config.current().pools.maxReplicas, 1)
  await writeFile(path, withReplicas(1))
  await config.reload()
  t.same(problems, ['ConfigUnreadable'])
  t.equal(config.problem(), undefined)
})

t.test('a change that no event tells of is found within ten seconds', async (t) => {
  // The watch sees the directory of the link, not that of its target.
  const target = join(await directoryFor(t), 'target.yaml')
  const path = join(await directoryFor(t), 'config.yaml')
  await writeFile(target, withReplicas(1))
  await symlink(target, path)
  const clock = new ManualClock()
  const events = new EventEmitter()
  const config = await watchConfig({ path, clock, onChange: () => events.emit('change') })
  t.teardown(() => config.close())
  for (const replicas of [2, 3]) {
    await writeFile(target, withReplicas(replicas))
    const changed = once(events, 'change')
    await clock.advance(10_000)
    await changed
    t.equal(config.current().pools.maxReplicas, replicas)
    // The next look is planned once this one is over.
    await config.reload()
  }
})

t.test('nothing is read after closing', async (t) => {
  const { path, config } = await watched(t, withReplicas(1))
  config.close()
  await writeFile(path, withReplicas(2))
  await config.reload()
  t.equal(config.current().pools.maxReplicas, 1)
})

t.test('the links of a mounted ConfigMap are followed when they are swapped', async (t) => {
  const directory = await directoryFor(t)
  const publish = async (version: string, text: string) => {
    await mkdir(join(directory, version))
    await writeFile(join(directory, version, 'config.yaml'), text)
    await symlink(version, join(directory, '..data_tmp'))
    await rename(join(directory, '..data_tmp'), join(directory, '..data'))
  }
  await publish('..1', withReplicas(1))
  await symlink(join('..data', 'config.yaml'), join(directory, 'config.yaml'))
  const events = new EventEmitter()
  const config: WatchedConfig = await watchConfig({
    path: join(directory, 'config.yaml'),
    clock: systemClock,
    onChange: () => events.emit('change'),
  })
  t.teardown(() => config.close())
  const changed = once(events, 'change')
  await publish('..2', withReplicas(2))
  await changed
  t.equal(config.current().pools.maxReplicas, 2)
})
