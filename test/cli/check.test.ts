import { join } from 'node:path'
import t from 'tap'
import { sandgate } from './sandgate.ts'

const template = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec:
  podTemplate: { spec: { containers: [{ name: main, image: "python:3.13" }] } }
`
const pool = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: python }
spec: { sandboxTemplateRef: { name: python } }
`
const claim = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata:
  name: task
spec:
  warmPoolRef: { name: python }
`
const claimWithEnv = `${claim}  env:
    - { name: MODE, value: fast }
`
const open = template.replace('spec:\n', 'spec:\n  networkPolicyManagement: Unmanaged\n')
const stream = (...documents: string[]) => documents.join('---')

async function check(args: readonly string[], input?: string, cwd?: string) {
  return await sandgate(['check', ...args], { ...(input !== undefined && { input }), ...(cwd && { cwd }) })
}

t.test('manifests without a fault end with 0, from standard input', async (t) => {
  const { code, stdout, stderr } = await check(['-f', '-'], stream(claim, pool, template))
  t.equal(code, 0)
  t.equal(stdout, '3 objects checked: none refused.\n')
  t.equal(stderr, '')
})

t.test('a warning is shown and refuses nothing', async (t) => {
  const { code, stdout } = await check(['-f', '-'], open)
  t.equal(code, 0)
  t.match(stdout, /warning {2}line 6: spec\.networkPolicyManagement: .*\(template\/network-open\)/)
  t.match(stdout, '1 object checked: none refused, 1 warning.')
})

t.test('a folder is read with all below it, whatever the order of its files', async (t) => {
  const folder = t.testdir({
    'a-claim.yaml': claimWithEnv,
    deeper: { 'pool.yml': pool, 'template.json': JSON.stringify(JSON.parse(jsonTemplate)) },
    'notes.txt': 'kind: SandboxClaim',
    '.hidden': { 'broken.yaml': '[' },
    node_modules: { 'broken.yaml': '[' },
  })
  const { code, stdout, stderr } = await check(['-f', folder])
  t.equal(code, 1)
  t.equal(
    stdout,
    `${join(folder, 'a-claim.yaml')}
  document 1: SandboxClaim default/task
    refused  line 8: spec.env: template python lets no claim set variables. Remove env, or set envVarsInjectionPolicy: Allowed on the template. (claim/env-policy)

3 objects checked: 1 refused.
`,
  )
  t.equal(stderr, '')
})

const jsonTemplate = JSON.stringify({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxTemplate',
  metadata: { name: 'python' },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.13' }] } } },
})

t.test('files named one after the other are all read', async (t) => {
  const folder = t.testdir({ 'claim.yaml': claim, 'pool.yaml': pool, 'template.yaml': template })
  const { code, stdout } = await check(['-f', 'claim.yaml', 'pool.yaml', '-f', 'template.yaml'], undefined, folder)
  t.equal(code, 0)
  t.match(stdout, '3 objects checked')
})

t.test('as GitHub workflow commands, findings are annotations on their lines', async (t) => {
  const folder = t.testdir({ 'a,b.yaml': stream(template, pool, claimWithEnv), 'open.yaml': open })
  const { code, stdout } = await check(['-f', 'a,b.yaml', '-f', 'open.yaml', '-o', 'github'], undefined, folder)
  t.equal(code, 1)
  const [error, warning, summary] = stdout.trim().split('\n')
  t.match(error, /^::error file=a%2Cb\.yaml,line=19,title=claim\/env-policy::spec\.env: template python/)
  t.match(warning, /^::warning file=open\.yaml,line=6,title=template\/network-open::/)
  t.equal(summary, '4 objects checked: 1 refused, 1 warning.')
})

t.test('as JSON, every object has its verdict', async (t) => {
  const { code, stdout } = await check(['-f', '-', '-o', 'json'], stream(template, pool, claimWithEnv, '\nkind: Other'))
  t.equal(code, 1)
  t.match(JSON.parse(stdout), {
    summary: { objects: 3, refused: 1, warnings: 0, audits: 0, skipped: 1 },
    objects: [
      { kind: 'SandboxTemplate', allowed: true, findings: [] },
      { kind: 'SandboxWarmPool', allowed: true, findings: [] },
      {
        file: 'stdin',
        document: 3,
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxClaim',
        name: 'task',
        namespace: 'default',
        operation: 'CREATE',
        allowed: false,
        findings: [{ rule: 'claim/env-policy', mode: 'enforce', field: 'spec.env', line: 19 }],
      },
    ],
    skipped: [{ file: 'stdin', document: 4, kind: 'Other' }],
  })
})

t.test('what is not known is not complained of: a pool that may be in the cluster', async (t) => {
  const { code, stdout } = await check(['-f', '-'], claim)
  t.equal(code, 0)
  t.equal(stdout, '1 object checked: none refused.\n')
})

t.test('other kinds are counted and skipped; a Pod only if it passes for a sandbox’s', async (t) => {
  const pod = (name: string, labels: object) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: { containers: [] } })
  const namespace = '{apiVersion: v1, kind: Namespace, metadata: {name: default}}'
  const lines = [pod('a', { app: 'x' }), pod('b', { 'agents.x-k8s.io/sandbox-name-hash': 'abc' }), namespace]
  const others = ['{kind: Deployment, apiVersion: apps/v1}', '{kind: Deployment, apiVersion: apps/v1}', '{a: 1}']
  const { code, stdout, stderr } = await check(['-f', '-'], [...lines, ...others].join('\n---\n'))
  t.equal(code, 1)
  t.match(stdout, /Pod default\/b\n.*pod\/forged-sandbox/)
  t.match(stdout, '1 object checked: 1 refused.')
  t.equal(stderr, 'sandgate: 4 objects of other kinds were skipped: Pod, Deployment (2), no kind\n')
})

t.test('a namespace among the manifests lowers policy rules by its label, integrity rules not', async (t) => {
  const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: lax, labels: {sandgate.dev/admission: warn}}\n'
  const { code, stdout } = await check(
    ['-n', 'lax', '-f', '-'],
    [namespace, template, pool, claimWithEnv].join('\n---\n'),
  )
  t.equal(code, 0)
  t.match(stdout, /warning {2}.*\(claim\/env-policy\) \[the namespace asks for no more\]/)
})

t.test('configuration and user count', async (t) => {
  const folder = t.testdir({
    'sandgate.yaml': 'rules: {claim/env-policy: warn}\nadmission: {trustedUsers: [velero]}',
    'stock.yaml': `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: { name: restored, labels: { agents.x-k8s.io/warm-pool-sandbox: abc } }
spec: { podTemplate: { spec: { containers: [{ name: main, image: x }] } } }
`,
    'claim.yaml': stream(template, pool, claimWithEnv),
  })
  const run = async (...args: string[]) => await check(args, undefined, folder)
  t.equal((await run('-f', 'claim.yaml')).code, 1)
  t.equal((await run('-f', 'claim.yaml', '--config', 'sandgate.yaml')).code, 0)
  t.equal((await run('-f', 'stock.yaml', '--config', 'sandgate.yaml')).code, 1)
  t.equal((await run('-f', 'stock.yaml', '--config', 'sandgate.yaml', '--user', 'velero')).code, 0)
})

t.test('claims together count towards the quota, and only those beyond it are refused', async (t) => {
  const folder = t.testdir({ 'sandgate.yaml': 'claims: {maxPerNamespace: 2}' })
  const named = (name: string) => claim.replace('name: task', `name: ${name}`)
  const input = stream(template, pool, named('one'), named('two'), named('three'))
  const { code, stdout } = await check(['-f', '-', '--config', join(folder, 'sandgate.yaml')], input)
  t.equal(code, 1)
  t.match(stdout, /SandboxClaim default\/three\n.*claim\/quota/)
  t.match(stdout, '5 objects checked: 1 refused.')
})

t.test('what the API server would not take in is refused as by the schema, whatever it is', async (t) => {
  const wrong = [
    claim.replace('v1beta1', 'v1alpha1'),
    claim.replace('name: task', 'namespace: default'),
    claim.replace('name: task', 'name: 5'),
    claim.replace('name: task', 'name: task\n  labels: { a: yes }'),
    claim.replace('name: task', 'name: task\n  annotations: [a]'),
    claim.replace('{ name: python }', 'python'),
    '\nkind: [a]\napiVersion: 7\nmetadata: null\n',
  ]
  const { code, stdout, stderr } = await check(['-f', '-'], stream(...wrong))
  t.equal(code, 1)
  const messages = stdout.split('\n').flatMap((line) => /refused +line \d+: (.*) \(schema\)$/.exec(line)?.[1] ?? [])
  t.match(messages, [
    'apiVersion: must be extensions.agents.x-k8s.io/v1beta1, not extensions.agents.x-k8s.io/v1alpha1',
    'metadata.name: is required',
    'metadata.name: must be a string, not 5: quote it',
    "metadata.labels['a']: must be a string, not true: quote it",
    'metadata.annotations: must be a mapping of keys to text',
    'spec.warmPoolRef: must be object, not "python"',
  ])
  t.match(stderr, 'no kind')
})

t.test('names that are still to be generated collide with nothing', async (t) => {
  const sandbox = `
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: { generateName: box- }
spec: { podTemplate: { spec: { containers: [{ name: main, image: x }] } } }
`
  const { code, stdout } = await check(['-f', '-'], stream(sandbox, sandbox))
  t.equal(code, 0)
  t.equal(stdout, '2 objects checked: none refused.\n')
})

const unreadable: readonly [string, Record<string, string>, readonly string[], RegExp][] = [
  ['a file that is not there', {}, ['-f', 'missing.yaml'], /^sandgate: missing\.yaml: cannot be read \(ENOENT\)\n$/],
  ['broken YAML', { 'a.yaml': 'kind: A\n---\nkind: [\n' }, ['-f', '.'], /^sandgate: a\.yaml:4: .+\n$/],
  ['a key twice', { 'a.yaml': 'kind: A\nkind: B\n' }, ['-f', 'a.yaml'], /^sandgate: a\.yaml:2: .*unique.*\n$/],
  ['a list at the top', { 'a.json': '\n[1]' }, ['-f', 'a.json'], /^sandgate: a\.json:2: a manifest must be a mapping/],
  ['several of them', { 'a.yaml': '[', 'b.yaml': ']' }, ['-f', '.'], /^sandgate: a\.yaml:1: .+\nb\.yaml:1: .+\n$/],
  [
    'a bad configuration',
    { 'c.yaml': 'x: 1' },
    ['-f', '.', '--config', 'c.yaml'],
    /c\.yaml: "x" is not a known option/,
  ],
]
for (const [what, files, args, message] of unreadable) {
  t.test(`${what} ends with 2 and its place`, async (t) => {
    const { code, stdout, stderr } = await check(args, undefined, t.testdir(files))
    t.equal(code, 2)
    t.match(stderr, message)
    t.equal(stdout, '')
  })
}
