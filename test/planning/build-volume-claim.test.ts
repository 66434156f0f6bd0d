import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { buildVolumeClaim } from '../../src/planning/build-volume-claim.ts'
import { aSandbox } from './sandbox-fixtures.ts'

t.test(
  'a volume claim is called <template>-<sandbox>, is owned by the sandbox, and has the spec of its template',
  async (t) => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const claim = buildVolumeClaim({ metadata: { name: 'data' }, spec }, aSandbox())
    t.match(claim.metadata, {
      name: 'data-box',
      namespace: 'ns',
      labels: { [labels.sandboxNameHash]: nameHash('box') },
      ownerReferences: [{ kind: 'Sandbox', uid: 'box-uid', controller: true, blockOwnerDeletion: true }],
    })
    t.same(claim.spec, spec)
    t.notOk(claim.metadata.annotations)
  },
)

t.test('labels and annotations of the template are carried over, reserved ones are not', async (t) => {
  const metadata = {
    name: 'data',
    labels: { tier: 'fast', [labels.adoptable]: 'true' },
    annotations: { note: 'x', 'sandgate.dev/origin': 'forged' },
  }
  const claim = buildVolumeClaim({ metadata, spec: {} }, aSandbox())
  t.same(claim.metadata.labels, { tier: 'fast', [labels.sandboxNameHash]: nameHash('box') })
  t.same(claim.metadata.annotations, { note: 'x' })
})
