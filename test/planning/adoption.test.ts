import t from 'tap'
import { adoptionPatch, metadataSyncPatch } from '../../src/planning/adoption.ts'
import { aClaim, aSandbox, template } from './claim-fixtures.ts'

const safeToEvict = 'cluster-autoscaler.kubernetes.io/safe-to-evict'

function pooled() {
  const sandbox = aSandbox()
  sandbox.metadata.labels = {
    ...sandbox.metadata.labels,
    'agents.x-k8s.io/warm-pool-sandbox': 'cafe0123',
    'agents.x-k8s.io/sandbox-template-hash': 'x',
    'agents.x-k8s.io/created-by': 'someone-before',
  }
  sandbox.spec.podTemplate.metadata = {
    labels: { ...sandbox.spec.podTemplate.metadata?.labels, 'agents.x-k8s.io/warm-pool-sandbox': 'cafe0123' },
    annotations: { [safeToEvict]: 'true' },
  }
  return sandbox
}

t.test(
  'one patch takes the pool’s marks off and puts the claim’s on, bound to the version that was chosen',
  async (t) => {
    const claim = aClaim({
      metadata: {
        labels: { 'agents.x-k8s.io/created-by': 'python-sdk' },
        annotations: {
          'sandgate.dev/requested-by': 'jane',
          'opentelemetry.io/trace-context': '{}',
          other: 'stays behind',
        },
      },
      spec: { additionalPodMetadata: { labels: { 'sandbox.users.io/a': '1' } } },
    })
    t.same(adoptionPatch(claim, pooled(), template, 'proof'), {
      metadata: {
        uid: 'pool-abc-uid',
        resourceVersion: '5',
        ownerReferences: [
          {
            apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
            kind: 'SandboxClaim',
            name: 'claim',
            uid: 'claim-uid',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
        labels: {
          'agents.x-k8s.io/warm-pool-sandbox': null,
          'agents.x-k8s.io/sandbox-template-hash': null,
          'agents.x-k8s.io/sandbox-pod-template-hash': null,
          'agents.kruise.io/sandbox-pool': null,
          'agents.x-k8s.io/launch-type': 'warm',
          'agents.x-k8s.io/claim-uid': 'claim-uid',
          'agents.x-k8s.io/created-by': 'python-sdk',
        },
        annotations: {
          'agents.x-k8s.io/pod-name': 'pool-abc',
          'sandgate.dev/bound': 'proof',
          'sandgate.dev/requested-by': 'jane',
          'opentelemetry.io/trace-context': '{}',
        },
      },
      spec: {
        podTemplate: {
          metadata: {
            labels: {
              'agents.x-k8s.io/warm-pool-sandbox': null,
              'agents.x-k8s.io/claim-uid': 'claim-uid',
              'agents.x-k8s.io/created-by': 'python-sdk',
              'sandbox.users.io/a': '1',
            },
            annotations: { [safeToEvict]: null },
          },
        },
      },
    })
  },
)

t.test('created-by is removed when the claim has none', async (t) => {
  t.match(adoptionPatch(aClaim(), pooled(), template, 'proof'), {
    metadata: { labels: { 'agents.x-k8s.io/created-by': null } },
  })
})

t.test('a safe-to-evict of the template’s own stays', async (t) => {
  const { podTemplate } = template.spec
  const withOwn = {
    ...template,
    spec: {
      podTemplate: { ...podTemplate, metadata: { ...podTemplate.metadata, annotations: { [safeToEvict]: 'true' } } },
    },
  }
  const patch = adoptionPatch(aClaim(), pooled(), withOwn, 'proof')
  const { annotations } = (patch['spec'] as { podTemplate: { metadata: { annotations: object } } }).podTemplate.metadata
  t.same(annotations, {}, 'it is there already and is not taken off')
})

t.test('a member of a SandboxSet is marked as claimed, others are not', async (t) => {
  const member = pooled()
  member.metadata.labels = { ...member.metadata.labels, 'agents.kruise.io/sandbox-claimed': 'false' }
  t.match(adoptionPatch(aClaim(), member, template, ''), {
    metadata: { labels: { 'agents.kruise.io/sandbox-claimed': 'true' } },
  })
  const other = adoptionPatch(aClaim(), pooled(), template, '') as { metadata: { labels: object } }
  t.notOk(Object.hasOwn(other.metadata.labels, 'agents.kruise.io/sandbox-claimed'))
})

t.test('a bound sandbox that is in line needs no patch', async (t) => {
  const claim = aClaim()
  t.equal(metadataSyncPatch(claim, aSandbox({ claim }), template), undefined)
})

t.test('without its template a bound sandbox keeps what it has and gets what the claim adds', async (t) => {
  const claim = aClaim({ spec: { additionalPodMetadata: { annotations: { 'example.com/a': '1' } } } })
  const patch = metadataSyncPatch(claim, aSandbox({ claim }), undefined)
  t.same(patch, {
    metadata: { uid: 'pool-abc-uid', resourceVersion: '5' },
    spec: { podTemplate: { metadata: { labels: {}, annotations: { 'example.com/a': '1' } } } },
  })
})

t.test('a template that the pool came to refer to later does not change the Pods of bound sandboxes', async (t) => {
  const claim = aClaim()
  const other = {
    ...template,
    metadata: { ...template.metadata, name: 'node' },
    spec: { podTemplate: { ...template.spec.podTemplate, metadata: { labels: { team: 'y' } } } },
  }
  t.equal(metadataSyncPatch(claim, aSandbox({ claim }), other), undefined)
})

t.test('a sandbox without the mark of its template is marked at adoption', async (t) => {
  const bare = aSandbox({ metadata: { labels: {} } })
  const patch = adoptionPatch(aClaim(), { ...bare, spec: { podTemplate: { spec: { containers: [] } } } }, template, '')
  t.match(patch, {
    spec: { podTemplate: { metadata: { labels: { 'agents.x-k8s.io/sandbox-template-ref-hash': /^[0-9a-f]{8}$/ } } } },
  })
})
