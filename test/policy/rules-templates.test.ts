import t from 'tap'
import { evaluate } from '../../src/policy/evaluate.ts'
import type { RuleContext, Subject } from '../../src/policy/rule.ts'
import { configWith, context, subject, template } from './subjects.ts'

/** Messages of one rule. */
function messagesOf(rule: string, given: Subject, around: RuleContext = context()): string[] {
  return evaluate(given, around, {}).flatMap((finding) => (finding.rule === rule ? [finding.message] : []))
}

t.test('a reserved key that is changed in a template is refused, in annotations too', async (t) => {
  const withNote = (value: string) => {
    const given = template()
    given.spec.podTemplate.metadata = { annotations: { 'sandgate.dev/x': value } }
    return given
  }
  const given = subject('SandboxTemplate', withNote('2'), { oldObject: withNote('1') })
  t.match(messagesOf('template/reserved-metadata', given), [/annotations\['sandgate\.dev\/x'\].*was changed/])
  const kept = subject('SandboxTemplate', withNote('1'), { oldObject: withNote('1') })
  t.same(messagesOf('template/reserved-metadata', kept), [])
})

t.test('volume claim templates are compared by name when they change places', async (t) => {
  const volume = (name: string, labels: Record<string, string> = {}) => ({ metadata: { name, labels }, spec: {} })
  const marked = volume('b', { 'agents.x-k8s.io/adoptable': 'true' })
  const given = subject('SandboxTemplate', template({ volumeClaimTemplates: [marked, volume('a')] }), {
    oldObject: template({ volumeClaimTemplates: [volume('a'), marked] }),
  })
  t.same(messagesOf('template/reserved-metadata', given), [])
})

t.test('many pools of a template are counted, not listed', async (t) => {
  const poolsOfTemplate = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const given = subject('SandboxTemplate', template(), { operation: 'DELETE' })
  t.match(messagesOf('template/in-use', given, context({ poolsOfTemplate })), [/used by a, b, c, d, e and 2 more/])
})

t.test('a dry-run refusal without causes, or with bare ones, still refuses', async (t) => {
  const given = subject('SandboxTemplate', template())
  const around = (causes: object[]) => context({ dryRun: { kind: 'found', value: { accepted: false, causes } } })
  t.match(messagesOf('template/pod-invalid', given, around([])), [
    /^spec\.podTemplate: the API server refuses this Pod: it gives no/,
  ])
  t.match(messagesOf('template/pod-invalid', given, around([{ message: 'exceeded' }])), [
    /^spec\.podTemplate: .*exceeded/,
  ])
})

t.test('a Pod that was invalid before may stay so, one that becomes invalid may not', async (t) => {
  const dryRun = { kind: 'found', value: { accepted: false, causes: [{ message: 'bad' }] } } as const
  const changed = template()
  changed.spec.podTemplate.spec.containers[0]!.image = ''
  const modes = (object = template()) =>
    evaluate(subject('SandboxTemplate', object, { oldObject: template() }), context({ dryRun }), {})
      .filter(({ rule }) => rule === 'template/pod-invalid')
      .map(({ mode }) => mode)
  t.same(modes(), ['warn'])
  t.same(modes(changed), ['enforce'])
})

t.test('a container that takes over the offence of another is refused', async (t) => {
  const privileged = (name: string) => {
    const given = template()
    const containers = ['a', 'b'].map((each) => ({ name: each, securityContext: { privileged: each === name } }))
    given.spec.podTemplate.spec.containers = containers
    return given
  }
  const modes = (from: string, to: string) =>
    evaluate(subject('SandboxTemplate', privileged(to), { oldObject: privileged(from) }), context(), {}).map(
      ({ mode }) => mode,
    )
  t.same(modes('a', 'a'), ['warn'])
  t.same(modes('a', 'b'), ['enforce'])
})

t.test('a volume whose host path changes is refused', async (t) => {
  const mounted = (path: string) => {
    const given = template()
    given.spec.podTemplate.spec.volumes = [{ name: 'h', hostPath: { path } }]
    return given
  }
  const given = subject('SandboxTemplate', mounted('/'), { oldObject: mounted('/tmp') })
  t.same(
    evaluate(given, context(), {}).map(({ mode }) => mode),
    ['enforce'],
  )
})

t.test('restricted does not ask Linux things of a Windows Pod', async (t) => {
  const config = configWith((c) => (c.admission.podSecurity = 'restricted'))
  const given = template()
  given.spec.podTemplate.spec.os = { name: 'windows' }
  t.same(messagesOf('template/pod-security', subject('SandboxTemplate', given), context({}, config)), [])
})

t.test('images are known by their full names, in image volumes too', async (t) => {
  const config = configWith(
    (c) => (c.admission.imageRegistries = ['docker.io', 'localhost/', 'r.example.com:5000/team']),
  )
  const refused = (image: string) => {
    const given = template()
    given.spec.podTemplate.spec.containers[0]!.image = image
    given.spec.podTemplate.spec.volumes = [{ name: 'i', image: { reference: image } }]
    return messagesOf('template/image-registry', subject('SandboxTemplate', given), context({}, config)).length
  }
  for (const image of [
    'python',
    'python:3',
    'team/python',
    'docker.io/python',
    'localhost/x',
    'r.example.com:5000/team/x@sha256:0',
  ])
    t.equal(refused(image), 0, image)
  for (const image of ['quay.io/x', 'docker.io.evil.com/x', 'r.example.com/team/x', 'r.example.com:5000/x'])
    t.equal(refused(image), 2, image)
})

t.test('network rules: what opens a template and what does not', async (t) => {
  const peers = (to: object[]) => ({ egress: [{ to }] })
  const closed: [string, object][] = [
    ['no rules', {}],
    ['empty lists', { ingress: [], egress: [] }],
    ['Pods of the namespace', peers([{ podSelector: {} }])],
    [
      'Pods of some namespaces',
      peers([{ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } }]),
    ],
    ['some Pods of every namespace', peers([{ namespaceSelector: {}, podSelector: { matchLabels: { a: 'b' } } }])],
    ['a public block', peers([{ ipBlock: { cidr: '8.8.8.0/24' } }])],
    ['a malformed block, which the API server refuses', peers([{ ipBlock: { cidr: 'x' } }])],
    ['a few public callers', { ingress: [{ from: [{ ipBlock: { cidr: '8.0.0.0/8' } }] }] }],
  ]
  const open: [string, object][] = [
    ['a rule without peers', { egress: [{}] }],
    ['every Pod of the cluster', peers([{ namespaceSelector: {}, podSelector: {} }])],
    ['a metadata address', peers([{ ipBlock: { cidr: '169.254.169.254/32' } }])],
    ['the metadata address of IPv6', peers([{ ipBlock: { cidr: 'fd00:ec2::254/128' } }])],
    ['a hole that is too small', peers([{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/9'] } }])],
    ['ingress without peers', { ingress: [{ ports: [{ port: 80 }] }] }],
    ['ingress from all of IPv6', { ingress: [{ from: [{ ipBlock: { cidr: '::/0' } }] }] }],
    [
      'ingress from all but a little',
      { ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8'] } }] }] },
    ],
  ]
  const warnings = (networkPolicy: object) =>
    messagesOf('template/network-open', subject('SandboxTemplate', template({ networkPolicy }))).length
  for (const [what, rules] of closed) t.equal(warnings(rules), 0, what)
  for (const [what, rules] of open) t.equal(warnings(rules), 1, what)
})

t.test('ports of sidecars: opened by any rule that admits their protocol', async (t) => {
  const warnings = (
    networkPolicy: object | undefined,
    networkPolicyManagement: 'Managed' | 'Unmanaged' = 'Managed',
  ) => {
    const given = template({ networkPolicyManagement, ...(networkPolicy && { networkPolicy }) })
    const ports = [{ containerPort: 53, protocol: 'UDP', name: 'dns' }]
    given.spec.podTemplate.spec.containers.push({ name: 'side', ports })
    return messagesOf('template/sidecar-ports', subject('SandboxTemplate', given)).length
  }
  const opening = (port?: object) => ({ ingress: [{ from: [{ podSelector: {} }], ...(port && { ports: [port] }) }] })
  t.equal(warnings(undefined), 1)
  t.equal(warnings(undefined, 'Unmanaged'), 0)
  t.equal(warnings(opening()), 0, 'all ports')
  t.equal(warnings(opening({ protocol: 'UDP' })), 0, 'all ports of the protocol')
  t.equal(warnings(opening({ port: 53 })), 1, 'TCP is meant where no protocol is given')
  t.equal(warnings(opening({ port: 53, protocol: 'UDP' })), 0)
  t.equal(warnings(opening({ port: 50, endPort: 52, protocol: 'UDP' })), 1)
  t.equal(warnings(opening({ port: 'http', protocol: 'UDP' })), 1)
})

t.test(
  "a network policy is a template's own by annotation or by what it selects, and a set's by its prefix",
  async (t) => {
    const set = { metadata: { name: 'test-pool' }, spec: { replicas: 1, template: template().spec.podTemplate } }
    const warnings = (given: Subject, metadata: object, matchLabels = {}) => {
      const value = { metadata, spec: { podSelector: { matchLabels } } }
      return messagesOf('template/network-name-taken', given, context({ networkPolicy: { kind: 'found', value } }))
        .length
    }
    const ref = (to: string) => ({ annotations: { 'agents.x-k8s.io/sandbox-template-ref': to } })
    t.equal(warnings(subject('SandboxTemplate', template()), ref('python')), 0)
    t.equal(warnings(subject('SandboxTemplate', template()), ref('SandboxSet/python')), 1)
    t.equal(warnings(subject('SandboxSet', set), ref('SandboxSet/test-pool')), 0)
    t.equal(warnings(subject('SandboxSet', set), {}, { 'agents.x-k8s.io/sandbox-template-ref-hash': '59733166' }), 1)
  },
)

t.test('a scale that says nothing of replicas is no cap broken', async (t) => {
  const config = configWith((c) => (c.pools.maxReplicas = 0))
  const pool = { metadata: { name: 'p' }, spec: {} } as never
  t.same(
    messagesOf('pool/replicas-cap', subject('SandboxWarmPool', pool, { subresource: 'scale' }), context({}, config)),
    [],
  )
})

t.test('a pool that is scaled down stays above the cap with a warning', async (t) => {
  const config = configWith((c) => (c.pools.maxReplicas = 2))
  const pool = (replicas: number) => ({
    metadata: { name: 'p' },
    spec: { replicas, sandboxTemplateRef: { name: 'x' } },
  })
  const modes = (from: number, to: number) =>
    evaluate(subject('SandboxWarmPool', pool(to), { oldObject: pool(from) }), context({}, config), {}).map(
      ({ mode }) => mode,
    )
  t.same(modes(5, 5), ['warn'])
  t.same(modes(5, 6), ['enforce'])
  t.same(modes(5, 2), [])
})

t.test('the mounts of a set whose template is unknown are not judged', async (t) => {
  const spec = {
    replicas: 1,
    templateRef: { name: 'x' },
    volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: {} }],
  }
  t.same(messagesOf('set/volume-mounted', subject('SandboxSet', { metadata: { name: 's' }, spec })), [])
})

t.test('a raw block volume counts as mounted', async (t) => {
  const spec = {
    replicas: 1,
    template: { spec: { containers: [{ name: 'm', volumeDevices: [{ name: 'd', devicePath: '/dev/x' }] }] } },
    volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: {} }],
  }
  t.same(messagesOf('set/volume-mounted', subject('SandboxSet', { metadata: { name: 's' }, spec })), [])
})
