import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { waitUntil } from '../../devcluster/wait.ts'

const all = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl']
/** Stands in for every binary: all that is asked of one is its version. */
const program = '#!/bin/sh\necho Kubernetes v1.20.2\n'
const version = 'v1.20.2-debian12-2'

async function assetsWith(t: Test, names: readonly string[]): Promise<string> {
  const folder = t.testdir(Object.fromEntries(names.map((name) => [name, program])))
  await Promise.all(names.map((name) => chmod(join(folder, name), 0o755)))
  return folder
}

/** A builder that counts its runs, then does what `body` says before it makes the folder. */
async function builderThat(folder: string, body = ''): Promise<string> {
  const path = join(folder, 'builder.sh')
  const make = all.map((name) => `printf '${program.replaceAll('\n', '\\n')}' >"$1.partial/${name}"`).join('\n')
  await writeFile(
    path,
    `set -eu\necho run >>"${folder}/runs"\necho step 1\n${body}\nmkdir -p "$1.partial"\n${make}\n` +
      'chmod 755 "$1.partial"/*\nmv -T "$1.partial" "$1"\n',
  )
  return path
}

const runsIn = async (folder: string): Promise<number> =>
  (await readFile(join(folder, 'runs'), 'utf8').catch(() => '')).split('\n').length - 1

t.test('KUBEBUILDER_ASSETS goes before the cache', async (t) => {
  const assets = await assetsWith(t, all)
  const lines: string[] = []
  const found = await findControlPlane((line) => lines.push(line), {
    environment: { KUBEBUILDER_ASSETS: assets, XDG_CACHE_HOME: '/nowhere' },
  })
  t.strictSame(found, {
    etcd: join(assets, 'etcd'),
    apiServer: join(assets, 'kube-apiserver'),
    controllerManager: join(assets, 'kube-controller-manager'),
    scheduler: join(assets, 'kube-scheduler'),
    kubectl: join(assets, 'kubectl'),
    minorVersion: 20,
    origin: 'KUBEBUILDER_ASSETS',
  })
  t.strictSame(lines, [])
})

t.test('without an optional binary the rest is used, and what that means is said', async (t) => {
  const assets = await assetsWith(t, ['etcd', 'kube-apiserver'])
  const lines: string[] = []
  const found = await findControlPlane((line) => lines.push(line), { environment: { KUBEBUILDER_ASSETS: assets } })
  t.hasStrict(found, { controllerManager: undefined, scheduler: undefined, kubectl: undefined })
  t.equal(lines.length, 3)
  t.match(lines.join('\n'), /has no kube-scheduler: Pods are not placed on nodes/)
})

t.test('a missing binary is an error that says where it should be and what to do', async (t) => {
  const assets = await assetsWith(t, ['kube-apiserver'])
  await t.rejects(
    findControlPlane(() => undefined, { environment: { KUBEBUILDER_ASSETS: assets } }),
    {
      code: 'MissingBinary',
      message: `${assets} (KUBEBUILDER_ASSETS) has no executable etcd; set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or unset it to build them`,
    },
  )
})

t.test('a file that cannot be run on this machine is an error', async (t) => {
  const assets = await assetsWith(t, ['etcd', 'kube-apiserver'])
  await writeFile(join(assets, 'kube-apiserver'), '#!/no/such/interpreter\n')
  await t.rejects(
    findControlPlane(() => undefined, { environment: { KUBEBUILDER_ASSETS: assets } }),
    {
      code: 'MissingBinary',
      message: /kube-apiserver does not run on this machine/,
    },
  )
})

t.test('what is not in the cache is built, with progress, and then found there', async (t) => {
  const cache = t.testdir({})
  const options = { environment: { XDG_CACHE_HOME: cache }, builder: await builderThat(cache) }
  const lines: string[] = []
  t.equal((await findControlPlane((line) => lines.push(line), options)).origin, 'built')
  t.match(lines, [/building it, once/, 'step 1', /^built in 0 m \d\d s$/])
  const again = await findControlPlane(() => undefined, options)
  t.equal(again.origin, 'cache')
  t.equal(again.etcd, join(cache, 'sandgate', 'control-plane', version, 'etcd'))
  t.equal(await runsIn(cache), 1)
})

t.test('of two builders one builds; the other says that it waits, and uses the result', async (t) => {
  const cache = t.testdir({})
  const builder = await builderThat(cache, `until [ -e "${cache}/go-on" ]; do sleep 0.05; done`)
  const options = { environment: { XDG_CACHE_HOME: cache }, builder }
  const first = findControlPlane(() => undefined, options)
  await waitUntil('the first builder', async () => (await runsIn(cache)) === 1, { withinMs: 10_000 })

  const waits = Promise.withResolvers<undefined>()
  const second = findControlPlane((line) => {
    if (line.startsWith('waiting for another process')) waits.resolve(undefined)
  }, options)
  await waits.promise
  await writeFile(join(cache, 'go-on'), '')
  t.match(await Promise.all([first, second]), [{ minorVersion: 20 }, { minorVersion: 20 }])
  t.equal(await runsIn(cache), 1)
})

t.test('the lock of a builder that was killed is taken over', async (t) => {
  const cache = t.testdir({})
  const folder = join(cache, 'sandgate', 'control-plane', version)
  const hanging = await builderThat(cache, 'while :; do sleep 60; done')
  const buildOnce = new URL('../../devcluster/build-once.sh', import.meta.url).pathname
  const killed = spawn('sh', [buildOnce, folder, hanging], { detached: true, stdio: 'ignore' })
  await waitUntil('the builder', async () => (await runsIn(cache)) === 1, { withinMs: 10_000 })
  // The group: a builder's compiler is a process of its own, and holds the lock as well.
  process.kill(-(killed.pid ?? 0), 'SIGKILL')
  await once(killed, 'exit')
  t.match(await readdir(join(cache, 'sandgate', 'control-plane')), [`${version}.lock`], 'its lock file is left behind')

  const builder = await builderThat(cache)
  const found = await findControlPlane(() => undefined, { environment: { XDG_CACHE_HOME: cache }, builder })
  t.equal(found.origin, 'built')
})

t.test('a build that fails is an error with what it said, its step, and the way around', async (t) => {
  const cache = t.testdir({})
  const builder = await builderThat(cache, 'echo no compiler >&2; exit 3')
  await t.rejects(
    findControlPlane(() => undefined, { environment: { XDG_CACHE_HOME: cache }, builder }),
    {
      code: 'BuildFailed',
      message: /exit code 3 at: step 1\)\nno compiler\nInstead of building, set KUBEBUILDER_ASSETS/,
    },
  )
})
