import * as fc from 'fast-check'
import t from 'tap'
import { webhooks } from '../../webhooks/table.ts'
import { buildGate, review } from './reviews.ts'
import { buildFacts } from './stores.ts'

/** Names that the gate looks for, so that random objects get past the first checks. */
const words = [
  ...['metadata', 'spec', 'name', 'labels', 'annotations', 'ownerReferences', 'deletionTimestamp', 'env', 'template'],
  ...['podTemplate', 'containers', 'volumes', 'volumeClaimTemplates', 'securityContext', 'warmPoolRef', 'lifecycle'],
  ...['sandboxTemplateRef', 'templateRef', 'replicas', 'networkPolicy', 'egress', 'ingress', 'ports', 'kind', 'uid'],
  ...['updateStrategy', 'maxUnavailable', 'shutdownTime', 'additionalPodMetadata', 'ephemeralContainers', '__proto__'],
]
const key = fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 6 }))
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthSize: 'xsmall', withCrossShrink: true },
    fc.oneof(fc.string({ maxLength: 8, unit: 'binary' }), fc.integer(), fc.double(), fc.boolean(), fc.constant(null)),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(key, tie('tree'), { maxKeys: 6 }),
  ),
}))
const container = fc.record(
  { name: tree, image: tree, env: tree, ports: tree, securityContext: tree, volumeMounts: tree },
  { requiredKeys: [] },
)
const podTemplate = fc.record({
  metadata: fc.oneof(tree, fc.constant({})),
  spec: fc.oneof(
    tree,
    fc.dictionary(key, tree),
    fc.record({ containers: fc.array(fc.oneof(container, tree)), volumes: tree }),
  ),
})
const spec = fc.oneof(
  tree,
  fc.record(
    {
      warmPoolRef: fc.oneof(tree, fc.constant({ name: 'p' })),
      podTemplate,
      template: podTemplate,
      env: fc.oneof(tree, fc.array(fc.record({ name: tree, value: tree }))),
      volumeClaimTemplates: fc.oneof(tree, fc.array(fc.record({ metadata: tree, spec: tree }))),
      replicas: fc.oneof(tree, fc.integer()),
      networkPolicy: fc.oneof(tree, fc.record({ egress: fc.array(tree), ingress: fc.array(tree) })),
      lifecycle: tree,
    },
    { requiredKeys: [] },
  ),
)
const metadata = fc.oneof(
  { weight: 1, arbitrary: tree },
  {
    weight: 4,
    arbitrary: fc.record(
      { name: fc.string(), labels: fc.dictionary(key, fc.string()), annotations: fc.dictionary(key, fc.string()) },
      { requiredKeys: [] },
    ),
  },
)
/** Specs that have their kind's shape, with oddities where the schema leaves room: these reach the rules. */
const text = fc.string({ maxLength: 12 })
const objectName = fc.stringMatching(/^[a-z0-9]{1,9}$/)
const openPodSpec = fc.dictionary(key, tree)
const shapedSpec = fc.oneof(
  fc.record({
    warmPoolRef: fc.record({ name: objectName }),
    env: fc.array(fc.record({ name: fc.string({ minLength: 1, maxLength: 9 }), value: text })),
    additionalPodMetadata: fc.record({ labels: fc.dictionary(key, text), annotations: fc.dictionary(key, text) }),
    volumeClaimTemplates: fc.array(fc.record({ metadata: fc.record({ name: text }), spec: openPodSpec })),
  }),
  fc.record({
    podTemplate: fc.record({ metadata: fc.record({ labels: fc.dictionary(key, text) }), spec: openPodSpec }),
    networkPolicy: fc.record({ egress: fc.array(openPodSpec), ingress: fc.array(openPodSpec) }),
    sandboxTemplateRef: fc.record({ name: objectName }),
    replicas: fc.nat(9),
    template: fc.record({ spec: openPodSpec }),
  }),
)
const object = fc.oneof(
  { weight: 1, arbitrary: tree },
  { weight: 3, arbitrary: fc.record({ metadata, spec }) },
  { weight: 4, arbitrary: fc.record({ metadata, spec: shapedSpec }) },
)
const what = fc.constantFrom(
  ...webhooks.map(({ path, targets: [target] }) => ({
    path,
    resource: [target?.resource.plural ?? '', ...(target?.subresource ? [target.subresource] : [])].join('/'),
  })),
)
const request = fc.record(
  {
    object,
    oldObject: object,
    operation: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('CREATE', 'UPDATE', 'DELETE') },
      { weight: 1, arbitrary: tree },
    ),
    userInfo: fc.oneof(tree, fc.constant({ username: 'alice', groups: [] })),
    dryRun: fc.oneof(fc.boolean(), tree),
    name: fc.oneof(fc.string(), tree),
  },
  { requiredKeys: ['object', 'oldObject'] },
)

// Slow machines take longer than tap's 30 s.
t.setTimeout(180_000)

t.test('10,000 reviews, however odd, each get a well-formed verdict that is not a defect of ours', async (t) => {
  const gate = buildGate({ facts: buildFacts().facts })
  const verdicts = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(what, request, async ({ path, resource }, changes) => {
      // `ask` throws on an answer that is not well-formed.
      const { status } = await gate.ask(path, review(resource, changes))
      const code = status?.code ?? 200
      verdicts.set(code, (verdicts.get(code) ?? 0) + 1)
      return code !== 500
    }),
    { numRuns: 10_000 },
  )
  for (const code of [200, 400, 403, 422]) t.ok((verdicts.get(code) ?? 0) > 50, `${code} is among the verdicts`)
})

t.test('bytes that are no review are refused, whatever they are', async (t) => {
  const gate = buildGate()
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const { allowed } = await gate.ask('/validate/claims', Buffer.from(bytes))
      return !allowed
    }),
    { numRuns: 500 },
  )
  t.pass('none was let through')
})
