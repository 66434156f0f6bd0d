import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { freePort, kubeconfigFor, sandgate, startSandgate, takenPort } from './sandgate.ts'

const commands = ['serve', 'check', 'status', 'certs', 'manifests', 'dev', 'version']

/** One line that says what to do, and nothing of a stack. */
function isOneLine(text: string): boolean {
  return /^sandgate: [^\n]+\n$/.test(text)
}

t.test('without a command the usage names them all, and the exit code says that something is missing', async (t) => {
  const { code, stdout } = await sandgate([])
  t.equal(code, 2)
  for (const name of commands) t.match(stdout, new RegExp(`^  ${name} +\\S`, 'm'))
})

for (const name of commands) {
  t.test(`${name} --help shows its usage`, async (t) => {
    const { code, stdout, stderr } = await sandgate([name, '--help'])
    t.equal(code, 0)
    t.match(stdout, new RegExp(`^Usage: sandgate ${name}`))
    if (name !== 'version') t.match(stdout, /^Examples:$/m)
    t.equal(stderr, '')
  })
}

const wrongUsages: readonly [string, readonly string[], RegExp][] = [
  ['an unknown command', ['sreve'], /no command 'sreve'.*sandgate --help/],
  ['an unknown flag', ['status', '--watchh'], /--watchh.*sandgate status --help/],
  ['a flag without its value', ['serve', '--config'], /--config.*sandgate serve --help/],
  ['an argument that is none', ['certs', 'now'], /'now'.*sandgate certs --help/],
  ['an unknown format', ['status', '-o', 'yaml'], /table, json, not 'yaml'.*sandgate status --help/],
  ['a namespace beside all of them', ['status', '-A', '-n', 'a'], /-A and -n/],
  ['a port that is none', ['serve', '--port', '70000'], /0 to 65535, not '70000'/],
  ['nothing to check', ['check'], /with -f/],
  ['manifests without -f', ['check', 'a.yaml'], /with -f/],
  ['a kubeconfig for an offline check', ['check', '-f', '-', '--kubeconfig', 'x'], /--from-cluster/],
  ['a number of nodes that is none', ['dev', '--nodes', 'two'], /'two'/],
]
for (const [what, args, message] of wrongUsages) {
  t.test(`${what} is wrong usage`, async (t) => {
    const { code, stdout, stderr } = await sandgate(args)
    t.equal(code, 2)
    t.match(stderr, message)
    t.ok(isOneLine(stderr), stderr)
    t.equal(stdout, '')
  })
}

for (const command of [['serve'], ['status'], ['certs']]) {
  t.test(`${command[0]} says in one line what is wrong with its kubeconfig`, async (t) => {
    const folder = t.testdir({ broken: 'clusters: [', empty: '{}' })
    const run = async (args: readonly string[], env = {}) => await sandgate([...command, ...args], { env })
    const rows: readonly [Awaited<ReturnType<typeof run>>, RegExp][] = [
      [await run(['--kubeconfig', join(folder, 'missing')]), /missing: .*no such file/i],
      [await run(['--kubeconfig', join(folder, 'broken')]), /broken/],
      [await run([], { KUBECONFIG: join(folder, 'empty') }), /empty.*context/],
      [await run([], { HOME: folder }), /no cluster configured.*--kubeconfig/],
    ]
    for (const [{ code, stderr }, message] of rows) {
      t.equal(code, 1)
      t.match(stderr, message)
      t.ok(isOneLine(stderr), stderr)
    }
  })
}

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
