import t from 'tap'
import { defaultConfig } from '../../src/config/schema.ts'
import { coldSandbox } from '../../src/planning/cold-sandbox.ts'
import { metadataSyncPatch } from '../../src/planning/adoption.ts'
import { launchTypeOf } from '../../src/planning/launch-type.ts'
import { aClaim, aSandbox, template } from './claim-fixtures.ts'

t.test('a cold start is the template with what the claim adds, named like the claim and owned by it', async (t) => {
  const claim = aClaim({
    metadata: { labels: { 'agents.x-k8s.io/created-by': 'sdk' }, annotations: { 'sandgate.dev/requested-by': 'jane' } },
    spec: {
      env: [{ name: 'A', value: '1' }],
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
      additionalPodMetadata: { labels: { 'sandbox.users.io/a': '1' }, annotations: { 'example.com/b': '2' } },
    },
  })
  const sandbox = coldSandbox(claim, template, defaultConfig)
  t.match(sandbox, {
    metadata: {
      name: 'claim',
      namespace: 'ns',
      labels: {
        'agents.x-k8s.io/claim-uid': 'claim-uid',
        'agents.x-k8s.io/created-by': 'sdk',
        'agents.x-k8s.io/launch-type': 'cold',
      },
      annotations: { 'sandgate.dev/requested-by': 'jane', 'agents.x-k8s.io/pod-name': 'claim' },
      ownerReferences: [{ kind: 'SandboxClaim', uid: 'claim-uid', controller: true, blockOwnerDeletion: true }],
    },
    spec: {
      podTemplate: {
        metadata: {
          labels: { team: 'x', 'sandbox.users.io/a': '1', 'agents.x-k8s.io/claim-uid': 'claim-uid' },
          annotations: { 'example.com/b': '2' },
        },
        spec: { containers: [{ name: 'main', env: [{ name: 'A', value: '1' }] }] },
      },
      volumeClaimTemplates: [{ metadata: { name: 'data' } }],
    },
  })
  t.equal(metadataSyncPatch(claim, sandbox, template), undefined, 'and is in line from the start')
  t.equal(launchTypeOf(sandbox), 'cold')
  t.equal(launchTypeOf(aSandbox()), 'warm')
})

t.test('a claim that adds nothing leaves the template’s blueprint as it is', async (t) => {
  const { spec } = coldSandbox(aClaim(), template, defaultConfig)
  t.notOk(Object.hasOwn(spec, 'volumeClaimTemplates'))
  t.notOk(Object.hasOwn(spec.podTemplate.metadata ?? {}, 'annotations'))
})
