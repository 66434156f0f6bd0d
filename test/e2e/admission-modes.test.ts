import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { sandboxClaimKind, sandboxTemplateKind } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { configurationFile } from './configuration-file.ts'
import { startScene } from './scene.ts'

t.setTimeout(120_000)

const namespace = 'team'
const group = 'extensions.agents.x-k8s.io/v1beta1'

const template = (name: string, container: object = {}) =>
  JSON.stringify({
    apiVersion: group,
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: {
      envVarsInjectionPolicy: 'Allowed',
      podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.13', ...container }] } },
    },
  })
const privileged = (name: string) => template(name, { securityContext: { privileged: true } })
const claim = (name: string, spec: object = {}) =>
  JSON.stringify({
    apiVersion: group,
    kind: 'SandboxClaim',
    metadata: { name, finalizers: ['example.com/keep'] },
    spec: { warmPoolRef: { name: 'none' }, ...spec },
  })

t.test('what a rule does is for the configuration and the namespace to say', { timeout: 110_000 }, async (t) => {
  const configuration = await configurationFile(t.testdir())
  const scene = await startScene(t, { flags: [`--config=${configuration.path}`] })
  const { client, controlPlane, product, until } = scene
  const configured = (config: object) => configuration.use(product, config)
  for (const name of [namespace, 'locked']) {
    await controlPlane.createNamespace(name)
    await scene.kubectl(['create', 'rolebinding', 'alice', '--clusterrole=edit', '--user=alice', `-n=${name}`])
  }

  /** kubectl as alice; what it prints on standard error are warnings, or the refusal. */
  const tryAs = async (args: readonly string[], input?: string, where = namespace) => {
    const flags = ['--as=alice', `-n=${where}`]
    const { code, stderr } = await controlPlane.kubectl([...args, ...flags], input === undefined ? {} : { input })
    return { accepted: code === 0, stderr }
  }
  const create = (input: string, where?: string) => tryAs(['create', '-f', '-'], input, where)
  const notes = async (since: number) => {
    const requests = await controlPlane.requestsOf('alice', since)
    const all = requests.map(({ annotations = {} }) => annotations)
    const ours = all.flatMap((each) => Object.entries(each)).filter(([key]) => key.includes('.sandgate.dev/'))
    return Object.fromEntries(ours)
  }

  await t.test('a rule that is enforced refuses, and the audit log has its name', async (t) => {
    const since = Date.now()
    const { accepted, stderr } = await create(privileged('enforced'))
    t.notOk(accepted)
    t.match(stderr, /Forbidden.*\(template\/pod-security\)/)
    t.same(await notes(since), { 'templates.validate.sandgate.dev/denied': 'template/pod-security' })
  })

  await t.test('a rule that warns lets kubectl print it', async (t) => {
    await configured({ rules: { 'template/pod-security': 'warn' } })
    const since = Date.now()
    const { accepted, stderr } = await create(privileged('warned'))
    t.ok(accepted, stderr)
    t.match(stderr, /^Warning: .*\(template\/pod-security\)$/m)
    t.same(await notes(since), { 'templates.validate.sandgate.dev/warned': 'template/pod-security' })
  })

  await t.test('a family that is only audited shows in the audit log and in the metrics alone', async (t) => {
    await configured({ rules: { 'template/*': 'audit' } })
    const since = Date.now()
    t.same(await create(privileged('audited')), { accepted: true, stderr: '' })
    t.same(await notes(since), { 'templates.validate.sandgate.dev/would-deny': 'template/pod-security' })
    const metrics = await (await fetch(`${product.http}/metrics`)).text()
    const counted = metrics.split('\n').filter((line) => line.includes('rule="template/pod-security"'))
    for (const mode of ['enforce', 'warn', 'audit']) {
      t.ok(
        counted.some((line) => line.includes(`mode="${mode}"`) && line.endsWith(' 1')),
        `${mode} in ${counted.join()}`,
      )
    }
  })

  await t.test('a rule that is off is as if it were not there', async (t) => {
    await configured({ rules: { 'template/*': 'off' } })
    const since = Date.now()
    t.same(await create(privileged('unwatched')), { accepted: true, stderr: '' })
    t.same(await notes(since), {})
  })

  await t.test('a file that cannot be used changes nothing, and readiness says why', async (t) => {
    await writeFile(configuration.path, '{"rules": {"template/pod-securty": "off"}}')
    await until('the complaint', async () => {
      const report = await (await fetch(`${product.http}/readyz?verbose`)).text()
      return report.includes('template/pod-securty') && report.includes('template/pod-security')
    })
    t.ok((await create(privileged('unwatched-still'))).accepted)
    await configured({ admission: { lockedNamespaces: ['locked'] } })
  })

  await t.test('a namespace’s label softens policy, not what protects others', async (t) => {
    await scene.kubectl(['label', 'namespace', namespace, 'locked', 'sandgate.dev/admission=warn'])
    await until('the label', async () => (await create(privileged('softened'))).accepted)
    t.match((await create(privileged('softened-too'))).stderr, /^Warning: .*\(template\/pod-security\)$/m)
    const inLocked = await create(privileged('refused'), 'locked')
    t.notOk(inLocked.accepted, 'a locked namespace’s label is ignored')

    await scene.kubectl(['label', 'namespace', namespace, 'sandgate.dev/admission=off', '--overwrite'])
    await until('the new label', async () => (await create(privileged(`off-${Date.now()}`))).stderr === '')
    const forged = JSON.parse(privileged('forged')) as { metadata: object }
    const sandbox = {
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      metadata: { ...forged.metadata, labels: { [labels.warmPool]: '12345678' } },
      spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'evil' }] } } },
    }
    t.match((await create(JSON.stringify(sandbox))).stderr, /\(sandbox\/forged-pool\)/)
    await scene.kubectl(['label', 'namespace', namespace, 'sandgate.dev/admission-'])
    await until('the end of the label', async () => !(await create(privileged(`on-${Date.now()}`))).accepted)
  })

  await t.test('whoever breaks the glass is let past with a warning, and it is on record', async (t) => {
    await configured({ admission: { breakGlassGroup: 'wheel' } })
    const since = Date.now()
    const wheel = ['create', '-f', '-', '--as-group=wheel', '--as-group=system:authenticated']
    const { accepted, stderr } = await tryAs(wheel, privileged('broken-glass'))
    t.ok(accepted, stderr)
    t.match(stderr, /^Warning: .*\(template\/pod-security\)$/m)
    t.match(await notes(since), {
      'templates.validate.sandgate.dev/would-deny': 'template/pod-security',
      'templates.validate.sandgate.dev/break-glass': 'alice',
    })
    t.notOk((await create(privileged('whole-glass'))).accepted, 'others are refused as ever')
  })

  await t.test('what was stored under a milder policy can be labelled, mended and let go of', async (t) => {
    const labelled = { additionalPodMetadata: { labels: { 'sandbox.users.io/team': 'red' } } }
    t.ok((await create(claim('old', labelled))).accepted)
    t.ok((await create(claim('older', labelled))).accepted)
    t.ok((await create(template('stock'))).accepted)
    await configured({ admission: { labelDomains: ['example.com'], imageRegistries: ['registry.example.com'] } })

    const labelling = await tryAs(['label', 'sandboxclaim', 'old', 'seen=yes'])
    t.ok(labelling.accepted)
    t.match(labelling.stderr, /^Warning: .*\(claim\/label-domain\)$/m)
    t.notOk((await create(claim('new', labelled))).accepted)

    const free = ['--type=merge', '-p', '{"metadata":{"finalizers":null}}']
    t.match(await tryAs(['patch', 'sandboxclaim', 'old', ...free]), { accepted: true, stderr: /label-domain/ })
    await scene.kubectl(['delete', 'sandboxclaim', 'older', '--wait=false', `-n=${namespace}`])
    t.same(await tryAs(['patch', 'sandboxclaim', 'older', ...free]), { accepted: true, stderr: '' })
    await until('its end', async () => {
      const { items } = await client.list(sandboxClaimKind, { namespace })
      return !items.some(({ metadata }) => metadata.name === 'older')
    })

    t.match(await tryAs(['label', 'sandboxtemplate', 'stock', 'seen=yes']), {
      accepted: true,
      stderr: /\(template\/image-registry\)/,
    })
    const worse = await tryAs(['apply', '-f', '-'], template('stock', { image: 'python:3.14' }))
    t.notOk(worse.accepted, 'another image of the kind that is not allowed any more')
    t.match(worse.stderr, /\(template\/image-registry\)/)
    t.ok((await tryAs(['apply', '-f', '-'], template('stock', { image: 'registry.example.com/python' }))).accepted)
    await configured({})
  })

  await t.test('a Pod that could not be tried for reasons of its own is no mistake of the template', async (t) => {
    await scene.kubectl(['create', 'quota', 'none', '--hard=pods=0', `-n=${namespace}`])
    await until('the quota', async () => {
      const quota = await scene.kubectl(['get', 'quota', 'none', `-n=${namespace}`, '-o', 'jsonpath={.status.hard}'])
      return quota.includes('pods')
    })
    const { accepted, stderr } = await create(template('over-quota'))
    t.ok(accepted, stderr)
    t.match(stderr, /^Warning: .*exceeded quota.*\(template\/pod-invalid\)$/m)
    await scene.kubectl(['delete', 'quota', 'none', `-n=${namespace}`])

    const withAccount = JSON.parse(template('no-account')) as { spec: { podTemplate: { spec: object } } }
    Object.assign(withAccount.spec.podTemplate.spec, { serviceAccountName: 'nobody' })
    const missing = await create(JSON.stringify(withAccount))
    t.ok(missing.accepted, missing.stderr)
    t.match(missing.stderr, /^Warning: .*\(template\/pod-invalid\)$/m)
    t.ok(await client.get(sandboxTemplateKind, { namespace, name: 'no-account' }))
  })

  await t.test('a container for debugging is judged like those of the template', async (t) => {
    const box = {
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      metadata: { name: 'box' },
      spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python:3.13' }] } } },
    }
    t.ok((await create(JSON.stringify(box))).accepted)
    const debug = (name: string) =>
      controlPlane.kubectl(['debug', 'box', `--container=${name}`, '--image=busybox', `-n=${namespace}`])
    await until('the Pod', async () => (await scene.kubectl(['get', 'pods', `-n=${namespace}`])).includes('Running'))
    t.match(await debug('first'), { code: 0 })
    await configured({ admission: { podSecurity: 'restricted' } })
    const refused = await debug('second')
    t.not(refused.code, 0)
    t.match(refused.stderr, /\(pod\/ephemeral-container\)/)
    const pod = await scene.kubectl([
      'get',
      'pod',
      'box',
      `-n=${namespace}`,
      '-o',
      'jsonpath={.spec.ephemeralContainers}',
    ])
    t.match(pod, /first/)
    t.notMatch(pod, /second/)
  })
})
