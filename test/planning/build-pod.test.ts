import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { buildPod, podMetadata, podMetadataPatch } from '../../src/planning/build-pod.ts'
import { aClaimed, aMember, aPod, aSandbox, dataTemplate, poolOwner, setOwner } from './sandbox-fixtures.ts'

const containers = [{ name: 'main', image: 'python' }]
const withMetadata = (metadata: { labels?: Record<string, string>; annotations?: Record<string, string> }) => ({
  podTemplate: { metadata, spec: { containers } },
})

t.test('a Pod has the name of its sandbox, is owned by it, and blocks its foreground deletion', async (t) => {
  const { metadata } = buildPod(aSandbox(), defaultConfig)
  t.match(metadata, { name: 'box', namespace: 'ns', labels: { [labels.sandboxNameHash]: nameHash('box') } })
  t.same(metadata.ownerReferences, [
    {
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      name: 'box',
      uid: 'box-uid',
      controller: true,
      blockOwnerDeletion: true,
    },
  ])
})

t.test('labels and annotations of the template are carried over, and their keys recorded in order', async (t) => {
  const spec = withMetadata({ labels: { team: 'x', app: 'y' }, annotations: { note: 'z' } })
  const { labels: carried, annotations: noted } = podMetadata(aSandbox({ spec }))
  t.match(carried, { team: 'x', app: 'y' })
  t.match(noted, {
    note: 'z',
    [annotations.propagatedLabels]: 'app,team',
    [annotations.propagatedAnnotations]: 'note',
  })
})

t.test('reserved keys of the template are not carried over, whatever they claim', async (t) => {
  const forged = {
    [labels.claimUid]: 'victim',
    [labels.templateRefHash]: 'open',
    [labels.sandboxNameHash]: 'victim',
    'extensions.agents.x-k8s.io/x': '1',
    'sandgate.dev/attempt': '1',
  }
  const metadata = podMetadata(aSandbox({ spec: withMetadata({ labels: forged, annotations: forged }) }))
  t.same(metadata, { labels: { [labels.sandboxNameHash]: nameHash('box') }, annotations: {} })
})

t.test('the pool label is there exactly while a pool owns the sandbox', async (t) => {
  const poolLabel = (sandbox: ReturnType<typeof aSandbox>) => podMetadata(sandbox).labels[labels.warmPool]
  const marked = { labels: { [labels.warmPool]: 'abc' } }
  t.equal(poolLabel(aMember()), nameHash('pool'))
  t.equal(poolLabel(aSandbox({ metadata: { ...marked, ownerReferences: [setOwner] } })), 'abc')
  t.equal(poolLabel(aSandbox({ metadata: marked })), undefined)
  const impostor = { ...poolOwner, apiVersion: 'example.com/v1' }
  t.equal(poolLabel(aSandbox({ metadata: { ...marked, ownerReferences: [impostor] } })), undefined)
})

t.test('claim-uid and created-by are there exactly while a claim owns the sandbox', async (t) => {
  t.match(podMetadata(aClaimed()).labels, { [labels.claimUid]: 'claim-uid', [labels.createdBy]: 'sdk' })
  const loose = podMetadata(aSandbox({ metadata: { labels: { [labels.claimUid]: 'c', [labels.createdBy]: 'd' } } }))
  t.same(Object.keys(loose.labels), [labels.sandboxNameHash])
})

t.test('the template-ref hash comes from the label of the sandbox, else from its annotation', async (t) => {
  t.equal(podMetadata(aMember()).labels[labels.templateRefHash], nameHash('python'))
  const byName = aSandbox({ metadata: { annotations: { [annotations.templateRef]: 'SandboxSet/s' } } })
  t.equal(podMetadata(byName).labels[labels.templateRefHash], nameHash('SandboxSet/s'))
})

t.test('a volume claim takes the place of the volume of its name, or is added', async (t) => {
  const data = { name: 'data', persistentVolumeClaim: { claimName: 'data-box' } }
  const cache = { name: 'cache', emptyDir: {} }
  const volumesWith = (volumes: { name: string; emptyDir: object }[]) => {
    const spec = { podTemplate: { spec: { containers, volumes } }, volumeClaimTemplates: [dataTemplate] }
    return buildPod(aSandbox({ spec }), defaultConfig).spec?.volumes
  }
  t.same(volumesWith([{ name: 'data', emptyDir: {} }, cache]), [cache, data])
  t.same(volumesWith([cache]), [cache, data])
})

t.test('a sandbox that was created while admission was off gets the secure defaults all the same', async (t) => {
  const { spec } = buildPod(aSandbox(), defaultConfig)
  t.match(spec, {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
  })
  t.equal(spec?.dnsPolicy, undefined, 'it comes from no template, so nothing blocks the DNS of the cluster')
})

t.test('building a Pod leaves the sandbox as it is', async (t) => {
  const sandbox = aSandbox({ spec: { volumeClaimTemplates: [dataTemplate] } })
  const before = structuredClone(sandbox)
  buildPod(sandbox, defaultConfig)
  t.same(sandbox, before)
})

t.test('a Pod in line needs no patch, also with keys that others added', async (t) => {
  const sandbox = aMember()
  const pod = aPod(sandbox)
  t.equal(podMetadataPatch(pod, sandbox), undefined)
  const marked = { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, 'mesh.io/injected': '1' } } }
  t.equal(podMetadataPatch(marked, sandbox), undefined)
})

t.test('a key that the sandbox lost is taken off the Pod, one that others added is not', async (t) => {
  const pod = aPod(aSandbox({ spec: withMetadata({ labels: { team: 'x' }, annotations: { note: 'z' } }) }))
  const added = { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, theirs: '1' } } }
  t.same(podMetadataPatch(added, aSandbox()), {
    metadata: {
      uid: 'pod-uid',
      labels: { team: null },
      annotations: {
        note: null,
        [annotations.propagatedLabels]: null,
        [annotations.propagatedAnnotations]: null,
      },
    },
  })
})

t.test('a Pod never loses the hash that its NetworkPolicy selects', async (t) => {
  const stripped = aMember({ metadata: { labels: { [labels.warmPool]: nameHash('pool') } } })
  t.equal(podMetadataPatch(aPod(aMember()), stripped), undefined)
})

t.test('a record of keys that was tampered with does not take our own marks off', async (t) => {
  const pod = aPod(aMember())
  const forged = { [annotations.propagatedLabels]: `${labels.templateRefHash},${labels.sandboxNameHash}` }
  const patch = podMetadataPatch({ ...pod, metadata: { ...pod.metadata, annotations: forged } }, aMember())
  t.same(patch, {
    metadata: { uid: 'pod-uid', labels: {}, annotations: { [annotations.propagatedLabels]: null } },
  })
})
