import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startControlPlane } from '../../devcluster/control-plane.ts'
import { createWarden } from '../../devcluster/processes.ts'
import { waitUntil } from '../../devcluster/wait.ts'

t.setTimeout(120_000)
const main = new URL('../../devcluster/main.ts', import.meta.url).pathname
const binaries = await findControlPlane((line) => t.comment(line))

interface Running {
  readonly command: ChildProcess
  readonly directory: string
  readonly pids: readonly number[]
}

/** Starts the command line as a process of its own and waits until it says how to reach the cluster. */
async function startCommand(t: Test): Promise<Running> {
  const command = spawn(process.execPath, [main, '--nodes', '1'], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => command.kill('SIGKILL'))
  const [line] = (await once(createInterface(command.stdout), 'line')) as [string]
  const directory = dirname(line.replace('export KUBECONFIG=', ''))
  const names = await readdir(join(directory, 'running'))
  const pids = await Promise.all(names.map(async (name) => Number(await readFile(join(directory, 'running', name)))))
  return { command, directory, pids }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** A zombie, which somebody has yet to reap, is not alive. */
async function isAlive(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State:\tX')
  return !/^State:\t[ZX]/m.test(status)
}

async function areGone({ directory, pids }: Running): Promise<boolean> {
  const alive = await Promise.all(pids.map(isAlive))
  return !alive.includes(true) && !(await exists(directory))
}

t.test('when its parent is killed, no process and no folder is left', async (t) => {
  const running = await startCommand(t)
  t.equal(running.pids.length, 4)
  t.strictSame(await Promise.all(running.pids.map(isAlive)), [true, true, true, true])
  running.command.kill('SIGKILL')
  await t.resolves(waitUntil('the end', () => areGone(running), { withinMs: 10_000 }))
})

t.test('told to stop, the command stops everything and exits with 0', async (t) => {
  const running = await startCommand(t)
  running.command.kill('SIGTERM')
  t.strictSame(await once(running.command, 'exit'), [0, null])
  t.ok(await areGone(running))
})

t.test('a process that cannot start is an error with the end of its log, and nothing is left', async (t) => {
  const parent = t.testdir({ broken: '#!/bin/sh\necho "no such flag: --frobnicate" >&2\nexit 7\n', runs: {} })
  await chmod(join(parent, 'broken'), 0o755)
  const directory = join(parent, 'runs')
  const options = { log: pino({ level: 'silent' }), directory }
  await t.rejects(startControlPlane({ ...options, binaries: { ...binaries, apiServer: join(parent, 'broken') } }), {
    code: 'ProcessEnded',
    message: 'kube-apiserver ended (exit code 7):\nno such flag: --frobnicate',
  })
  t.strictSame(await readdir(directory), [])
})

t.test('a folder that cannot be made is an error that names it', async (t) => {
  await t.rejects(createWarden('/no/such/folder'), {
    code: 'ProcessEnded',
    message: 'cannot make a folder in /no/such/folder',
  })
})

t.test('a process that is told to stop and does not is killed', async (t) => {
  const warden = await createWarden(tmpdir())
  t.teardown(() => warden.dispose())
  const stubborn = await warden.start('stubborn', 'sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'])
  const isReady = async (): Promise<boolean> => (await readFile(stubborn.logFile, 'utf8')) === 'ready\n'
  await waitUntil('its trap', isReady, { withinMs: 10_000 })
  await stubborn.stop()
  t.equal(await stubborn.ended, 'signal SIGKILL')
  t.strictSame(
    await readdir(join(warden.directory, 'running')),
    [],
    'nobody will kill the next owner of its process id',
  )
  await warden.dispose()
  t.notOk(await exists(warden.directory))
})
