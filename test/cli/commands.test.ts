import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { certsCommand } from '../../src/cli/certs.ts'
import { checkCommand } from '../../src/cli/check.ts'
import type { Command } from '../../src/cli/command.ts'
import { devCommand } from '../../src/cli/dev.ts'
import { manifestsCommand } from '../../src/cli/manifests-command.ts'
import { serveCommand } from '../../src/cli/serve.ts'
import { statusCommand } from '../../src/cli/status.ts'
import { versionCommand } from '../../src/cli/version.ts'
import { freePort, kubeconfigFor, sandgate, startSandgate, takenPort } from './sandgate.ts'

const commands: readonly Command[] = [
  serveCommand,
  checkCommand,
  statusCommand,
  certsCommand,
  manifestsCommand,
  devCommand,
  versionCommand,
]

/** One line that says what to do, and nothing of a stack. */
function isOneLine(text: string): boolean {
  return /^sandgate: [^\n]+\n$/.test(text)
}

t.test('without a command the usage names them all, and the exit code says that something is missing', async (t) => {
  const { code, stdout } = await sandgate([])
  t.equal(code, 2)
  for (const { name } of commands) t.match(stdout, new RegExp(`^  ${name} +\\S`, 'm'))
})

t.test('--help shows the usage of a command', async (t) => {
  const { code, stdout, stderr } = await sandgate(['status', '--help'])
  t.equal(code, 0)
  t.equal(stdout, statusCommand.help)
  t.equal(stderr, '')
})

t.test('the help of every command has its usage and examples', async (t) => {
  for (const { name, help } of commands) {
    t.match(help, new RegExp(`^Usage: sandgate ${name}`))
    if (name !== 'version') t.match(help, /^Examples:$/m)
  }
})

for (const [what, args, message] of [
  ['an unknown command', ['sreve'], /no command 'sreve'.*sandgate --help/],
  ['an unknown flag', ['status', '--watchh'], /--watchh.*sandgate status --help/],
] as const) {
  t.test(`${what} is wrong usage, said in one line`, async (t) => {
    const { code, stdout, stderr } = await sandgate(args)
    t.equal(code, 2)
    t.match(stderr, message)
    t.ok(isOneLine(stderr), stderr)
    t.equal(stdout, '')
  })
}

const wrongUsages: readonly [string, Command, readonly string[], RegExp][] = [
  ['a flag without its value', serveCommand, ['--config'], /--config.*sandgate serve --help/],
  ['a port that is none', serveCommand, ['--port', '70000'], /0 to 65535, not '70000'/],
  ['an argument that is none', certsCommand, ['now'], /'now'.*sandgate certs --help/],
  ['an unknown format', statusCommand, ['-o', 'yaml'], /table, json, not 'yaml'.*sandgate status --help/],
  ['a namespace beside all of them', statusCommand, ['-A', '-n', 'a'], /-A and -n/],
  ['nothing to check', checkCommand, [], /with -f/],
  ['manifests without -f', checkCommand, ['a.yaml'], /with -f/],
  ['a kubeconfig for an offline check', checkCommand, ['-f', '-', '--kubeconfig', 'x'], /--from-cluster/],
  ['a number of nodes that is none', devCommand, ['--nodes', 'two'], /'two'/],
]
for (const [what, command, args, message] of wrongUsages) {
  t.test(`${what} is wrong usage`, async (t) => {
    await t.rejects(command.run(args), { exitCode: 2, message })
  })
}

t.test('a command says in one line what is wrong with its kubeconfig', async (t) => {
  const folder = t.testdir({ broken: 'clusters: [', empty: '{}' })
  const rows: readonly [readonly string[], Readonly<Record<string, string>>, RegExp][] = [
    [['serve', '--kubeconfig', join(folder, 'missing')], {}, /missing: .*no such file/i],
    [['status', '--kubeconfig', join(folder, 'broken')], {}, /broken/],
    [['certs'], { KUBECONFIG: join(folder, 'empty') }, /empty.*context/],
    [['serve'], { HOME: folder }, /no cluster configured.*--kubeconfig/],
  ]
  for (const [args, env, message] of rows) {
    const { code, stderr } = await sandgate(args, { env })
    t.equal(code, 1)
    t.match(stderr, message)
    t.ok(isOneLine(stderr), stderr)
  }
})

t.test('a check against a cluster that is not configured is unreadable input, not a refusal', async (t) => {
  const { code, stderr } = await sandgate(['check', '-f', '-', '--from-cluster', '--kubeconfig', '/nonexistent'])
  t.equal(code, 2)
  t.ok(isOneLine(stderr), stderr)
})

t.test('serve does not start with a configuration file that it cannot use', async (t) => {
  const folder = t.testdir({ kubeconfig: kubeconfigFor('https://127.0.0.1:1'), 'bad.yaml': 'pools: {maxReplica: 5}' })
  const serve = async (config: string) =>
    await sandgate(['serve', '--kubeconfig', join(folder, 'kubeconfig'), '--config', join(folder, config)])
  const bad = await serve('bad.yaml')
  t.equal(bad.code, 1)
  t.match(bad.stderr, /bad\.yaml: pools: .*Did you mean "maxReplicas"/)
  t.ok(isOneLine(bad.stderr), bad.stderr)
  const missing = await serve('missing.yaml')
  t.equal(missing.code, 1)
  t.match(missing.stderr, /missing\.yaml: cannot be read/)
})

t.test('serve ends when the port of its probes is in use', async (t) => {
  const folder = t.testdir({ kubeconfig: kubeconfigFor('https://127.0.0.1:1') })
  const port = await takenPort(t)
  const { code, stderr } = await sandgate([
    'serve',
    `--kubeconfig=${join(folder, 'kubeconfig')}`,
    `--http-port=${port}`,
  ])
  t.equal(code, 1)
  t.match(stderr, new RegExp(`port ${port}: another process uses it.*--http-port`))
  t.ok(isOneLine(stderr), stderr)
})

t.test('status and certs say that the API server does not answer', async (t) => {
  const port = await freePort()
  const kubeconfig = join(t.testdir({}), 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigFor(`https://127.0.0.1:${port}`))
  for (const command of ['status', 'certs']) {
    const { code, stderr } = await sandgate([command, '--kubeconfig', kubeconfig])
    t.equal(code, 1)
    t.match(stderr, /Unreachable.*ECONNREFUSED/)
    t.ok(isOneLine(stderr), stderr)
  }
})

t.test('serve waits for an API server that does not answer, and can be stopped meanwhile', async (t) => {
  const port = await freePort()
  const kubeconfig = join(t.testdir({}), 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigFor(`https://127.0.0.1:${port}`))
  const running = startSandgate(t, ['serve', '--kubeconfig', kubeconfig, '--http-port=0'])
  await running.sees('stderr', /waiting for the API server/)
  t.equal(await running.stop(), 0)
  const lines = running.output('stderr').trim().split('\n')
  const said = lines.map((line) => JSON.parse(line) as { level: string; msg: string })
  t.match(
    said.filter(({ level }) => level === 'warn'),
    [{ msg: new RegExp(`waiting for the API server at https://127.0.0.1:${port}: `) }],
    'once',
  )
})

t.test('a version says what it runs on', async (t) => {
  const { code, stdout } = await sandgate(['version'])
  t.equal(code, 0)
  t.match(stdout, /^sandgate \d+\.\d+\.\d+ \(node v\d+/)
})
