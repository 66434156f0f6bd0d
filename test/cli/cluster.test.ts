import { join } from 'node:path'
import t from 'tap'
import { mutatingWebhookConfigurations } from '../../certs/ca-bundle.ts'
import { sandboxWarmPoolKind } from '../../src/api/kinds.ts'
import type { StatusReport } from '../../src/cli/status-report.ts'
import { startScene } from '../e2e/scene.ts'
import { sandgate, startSandgate } from './sandgate.ts'

const stock = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: { name: python }
spec:
  podTemplate: { spec: { containers: [{ name: main, image: "python:3.13" }] } }
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: { name: python }
spec: { replicas: 2, sandboxTemplateRef: { name: python } }
`
const claim = (name: string, more = '') => `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: { name: ${name} }
spec: { warmPoolRef: { name: python } ${more} }
`

t.test('the commands that look at a cluster', async (t) => {
  const scene = await startScene(t)
  const { controlPlane, client, kubectl, until, product } = scene
  const env = { KUBECONFIG: controlPlane.kubeconfig }
  const status = async (...args: string[]) => await sandgate(['status', ...args], { env })

  await t.test('a watch prints again after each change, and ends when it is told to', async (t) => {
    const watching = startSandgate(t, ['status', '-w'], { env })
    await watching.sees('stdout', /Pools: none\n\nClaims: none\n\nRefused lately: none\n\n/)
    await kubectl(['apply', '-f', '-'], stock)
    await watching.sees('stdout', /^python +SandboxWarmPool +2 +2 +0 +0$/m)
    await kubectl(['apply', '-f', '-'], claim('one'))
    await watching.sees('stdout', /^one +python +Ready +python-\w+ +warm +\d+s +<?\d+s$/m)
    t.equal(await watching.stop('SIGINT'), 0)
    t.equal(watching.output('stderr'), '')
    const printed = watching
      .output('stdout')
      .trimEnd()
      .split(/\n\n(?=POOL|Pools)/)
    t.equal(new Set(printed).size, printed.length, 'nothing is printed twice')
  })

  await t.test('as JSON it is one line for each change', async (t) => {
    const watching = startSandgate(t, ['status', '-A', '-w', '-o', 'json'], { env })
    const output = await watching.sees('stdout', /\n/)
    t.match(JSON.parse(output.split('\n')[0] ?? ''), { pools: [{ name: 'python' }], claims: [{ name: 'one' }] })
    t.equal(await watching.stop(), 0)
  })

  await t.test('stale stock is counted by what the pool would make now', async (t) => {
    await client.patch(
      { ...sandboxWarmPoolKind, kind: 'SandboxTemplate', plural: 'sandboxtemplates' },
      { namespace: 'default', name: 'python' },
      { spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.14' }] } } } },
      { type: 'merge' },
    )
    const { stdout } = await status('-o', 'json')
    t.match(JSON.parse(stdout), { pools: [{ name: 'python', stale: 2 }] })
  })

  await t.test('refusals show with their message', async (t) => {
    await scene.kubectlRefused(['create', '-f', '-'], claim('bad', ', env: [{ name: A, value: b }]'))
    let report: StatusReport | undefined
    await until('the Event', async () => {
      report = JSON.parse((await status('-o', 'json')).stdout) as StatusReport
      return report.refusals.length > 0
    })
    t.match(report?.refusals, [
      { namespace: 'default', object: 'SandboxClaim bad', count: 1, message: /claim\/env-policy/ },
    ])
    t.match((await status('-A')).stdout, /^default +SandboxClaim bad +1 +\d+s +spec\.env: .*claim\/env-policy/m)
    t.match((await status('-n', 'kube-system')).stdout, /^Pools: none$/m)
  })

  await t.test('check knows what the cluster has, and judges what exists as an update', async (t) => {
    const folder = t.testdir({ 'claims.yaml': `${claim('new')}---${claim('lost').replace('python', 'nowhere')}` })
    const check = async (...args: string[]) => await sandgate(['check', '--from-cluster', ...args], { env })
    const known = await check('-f', join(folder, 'claims.yaml'))
    t.equal(known.code, 0, 'a warning is no refusal')
    t.match(
      known.stdout,
      /SandboxClaim default\/lost\n +warning .*SandboxWarmPool nowhere does not exist.*claim\/pool-missing/,
    )
    t.notMatch(known.stdout, /default\/new/)

    const other = await sandgate(['check', '--from-cluster', '-f', '-', '-o', 'json'], {
      env,
      input: claim('one').replace('name: python', 'name: other'),
    })
    t.equal(other.code, 1)
    t.match(JSON.parse(other.stdout), {
      objects: [{ operation: 'UPDATE', findings: [{ rule: 'claim/spec-immutable' }, { rule: 'claim/pool-missing' }] }],
    })
    const refusal = await scene.kubectlRefused(
      ['apply', '-f', '-'],
      claim('one').replace('name: python', 'name: other'),
    )
    t.match(refusal, /claim\/spec-immutable/, 'and so does admission')

    const broken = await sandgate(['check', '--from-cluster', '-f', '-'], {
      env,
      input: stock.replace('python:3.13', ''),
    })
    t.equal(broken.code, 1)
    t.match(broken.stdout, /line 6: spec\.podTemplate\.spec\.containers\[0\]\.image: .*\(template\/pod-invalid\)/)
  })

  await t.test('a user without rights is told which, and gets what is left', async (t) => {
    await kubectl(['create', 'serviceaccount', 'nobody'])
    const kubeconfig = await controlPlane.serviceAccountKubeconfig('default', 'nobody')
    const input = claim('new')
    const checked = await sandgate(['check', '--from-cluster', '--kubeconfig', kubeconfig, '-f', '-'], { input })
    t.equal(checked.code, 0)
    t.match(checked.stderr, /^sandgate: you may not read namespace default, sandboxtemplates in default, .*\n$/)
    const shown = await sandgate(['status', '--kubeconfig', kubeconfig])
    t.equal(shown.code, 1)
    t.match(shown.stderr, /^sandgate: .*Forbidden.*sandboxwarmpools.*\n$/)
  })

  await t.test('the certificates agree', async (t) => {
    const { code, stdout } = await sandgate(['certs', '-o', 'json'], { env })
    t.equal(code, 0)
    const { certificates, notes } = JSON.parse(stdout) as { certificates: { place: string }[]; notes: string[] }
    t.same(
      certificates.map(({ place }) => place),
      ['served', 'secret', 'caBundle', 'caBundle'],
    )
    t.same(notes, [])
    t.match((await sandgate(['certs'], { env })).stdout, /They agree\.\n$/)
  })

  await t.test('with the gate gone, certs says so; with a caBundle emptied, they do not agree', async (t) => {
    await product.process.stop()
    const gone = await sandgate(['certs'], { env })
    t.equal(gone.code, 0)
    t.match(gone.stdout, /^What 127\.0\.0\.1:\d+ serves cannot be seen: nothing listens there\.$/m)
    await client.patch(
      mutatingWebhookConfigurations,
      { name: 'sandgate' },
      [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }],
      { type: 'json' },
    )
    const emptied = await sandgate(['certs'], { env })
    t.equal(emptied.code, 1)
    t.match(emptied.stdout, /^The caBundle of claims\.mutate\.sandgate\.dev is empty/m)
    t.notMatch(emptied.stdout, 'They agree')
  })
})
