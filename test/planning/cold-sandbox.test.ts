import t from 'tap'
import { defaultConfig } from '../../src/config/schema.ts'
import type { SandboxSet } from '../../src/api/kinds.ts'
import { implicitTemplate } from '../../src/planning/blueprint.ts'
import { coldSandbox } from '../../src/planning/cold-sandbox.ts'
import { setRevision } from '../../src/planning/revision.ts'
import { metadataSyncPatch } from '../../src/planning/adoption.ts'
import { launchTypeOf } from '../../src/planning/launch-type.ts'
import { aClaim, aSandbox, pool, template } from './claim-fixtures.ts'

t.test('a cold start is the template with what the claim adds, named like the claim and owned by it', async (t) => {
  const claim = aClaim({
    metadata: { labels: { 'agents.x-k8s.io/created-by': 'sdk' }, annotations: { 'sandgate.dev/requested-by': 'jane' } },
    spec: {
      env: [{ name: 'A', value: '1' }],
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
      additionalPodMetadata: { labels: { 'sandbox.users.io/a': '1' }, annotations: { 'example.com/b': '2' } },
    },
  })
  const sandbox = coldSandbox(claim, pool, template, defaultConfig)
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
  const { spec } = coldSandbox(aClaim(), pool, template, defaultConfig)
  t.notOk(Object.hasOwn(spec, 'volumeClaimTemplates'))
  t.notOk(Object.hasOwn(spec.podTemplate.metadata ?? {}, 'annotations'))
})

t.test(
  'a cold start for a SandboxSet bears the labels by which the set’s sandboxes are found, as claimed',
  async (t) => {
    const set: SandboxSet = {
      metadata: { name: 'web', namespace: 'ns', uid: 'set-uid' },
      spec: { replicas: 1, template: template.spec.podTemplate },
    }
    const own = coldSandbox(aClaim(), set, implicitTemplate(set), defaultConfig).metadata.labels ?? {}
    t.match(own, {
      'agents.kruise.io/sandbox-template': 'web',
      'agents.kruise.io/sandbox-claimed': 'true',
      'agents.kruise.io/template-hash': setRevision(set),
    })
    t.notOk(Object.hasOwn(own, 'agents.kruise.io/sandbox-pool'), 'it is no stock')
    const ofPool = coldSandbox(aClaim(), pool, template, defaultConfig).metadata.labels ?? {}
    t.notOk(Object.keys(ofPool).some((key) => key.startsWith('agents.kruise.io/')))
  },
)
