import { access, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import t from 'tap'
// Has the control plane built before this file's time starts to run.
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startSandgate } from './sandgate.ts'

const isThere = async (path: string) =>
  await access(path).then(
    () => true,
    () => false,
  )

t.test('dev starts a cluster with a pool, says how to reach it, and leaves nothing behind', async (t) => {
  await findControlPlane(() => undefined)
  const env = Object.fromEntries(
    ['HOME', 'XDG_CACHE_HOME', 'KUBEBUILDER_ASSETS'].flatMap((key) => {
      const value = process.env[key]
      return value === undefined ? [] : [[key, value]]
    }),
  )
  const running = startSandgate(t, ['dev', '--nodes', '1'], { env })
  const output = await running.sees('stdout', /^default +python +SandboxWarmPool +5 +5 +0 +0$/m)
  const kubeconfig = /^export KUBECONFIG=(.+)\n/.exec(output)?.[1] ?? ''
  t.ok(await isThere(kubeconfig), 'its first line is for a shell')
  t.equal(await running.stop('SIGINT'), 0)
  t.notOk(await isThere(dirname(kubeconfig)))
})

t.test('what is for the development cluster alone is loaded when dev runs, and not before', async (t) => {
  const source = await readFile('src/cli/dev.ts', 'utf8')
  const imported = [...source.matchAll(/^import (type )?.* from '.*\/devcluster\/.*'$/gm)]
  t.ok(imported.every(([, type]) => type))
  t.notMatch(await readFile('src/main.ts', 'utf8'), /^import .*\/dev\.ts'/m)
})
