import fc from 'fast-check'
import t from 'tap'
import type { Sandbox } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import {
  originVerifier,
  signBound,
  signedBlueprint,
  signedPodMetadata,
  signOrigin,
  verifyBound,
  verifyOrigin,
  withOrigin,
  type OriginKeys,
} from '../../src/planning/origin.ts'

const first = { id: 'k1', secret: Buffer.alloc(32, 1) }
const second = { id: 'k2', secret: Buffer.alloc(32, 2) }
const keys: OriginKeys = { current: second, previous: first }

const sandbox: Sandbox = {
  metadata: { namespace: 'ns', name: 'pool-x', uid: 'sandbox-uid' },
  spec: {
    podTemplate: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'main', image: 'x' }] } },
    service: true,
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
  },
}
const signed = withOrigin(second, sandbox, 'owner')

t.test('a signed sandbox is valid for its owner, whatever key order the server stores it in', async (t) => {
  t.equal(verifyOrigin(keys, signed, 'owner'), 'valid')
  const { podTemplate, ...rest } = signed.spec
  const reordered = { ...signed, spec: { ...rest, podTemplate } }
  t.equal(verifyOrigin(keys, reordered, 'owner'), 'valid')
})

t.test('the previous key still proves, a key that nobody knows is told apart from a forgery', async (t) => {
  t.equal(verifyOrigin(keys, withOrigin(first, sandbox, 'owner'), 'owner'), 'valid')
  t.equal(verifyOrigin({ current: first }, signed, 'owner'), 'unknown-key')
})

t.test('the proof holds for nothing else', async (t) => {
  const { spec, metadata } = signed
  const others: Record<string, Sandbox> = {
    'another name': { ...signed, metadata: { ...metadata, name: 'other' } },
    'another namespace': { ...signed, metadata: { ...metadata, namespace: 'other' } },
    'another image': {
      ...signed,
      spec: { ...spec, podTemplate: { spec: { containers: [{ name: 'main', image: 'y' }] } } },
    },
    'no volumes': { ...signed, spec: { podTemplate: spec.podTemplate, service: true } },
    'no service': { ...signed, spec: { ...spec, service: false } },
    'no proof': { ...signed, metadata: { ...metadata, annotations: {} } },
    'an empty proof': { ...signed, metadata: { ...metadata, annotations: { [annotations.origin]: '' } } },
    'a key id without a signature': {
      ...signed,
      metadata: { ...metadata, annotations: { [annotations.origin]: 'k2.' } },
    },
    'a shorter signature': {
      ...signed,
      metadata: {
        ...metadata,
        annotations: { [annotations.origin]: metadata.annotations?.[annotations.origin]?.slice(0, -4) ?? '' },
      },
    },
  }
  for (const [what, other] of Object.entries(others)) t.equal(verifyOrigin(keys, other, 'owner'), 'invalid', what)
  t.equal(verifyOrigin(keys, signed, 'another owner'), 'invalid')
})

t.test('what adoption and its owner may change does not touch the proof', async (t) => {
  const changed: Sandbox = {
    ...signed,
    metadata: { ...signed.metadata, labels: { any: 'thing' }, ownerReferences: [] },
    spec: {
      ...signed.spec,
      podTemplate: { ...signed.spec.podTemplate, metadata: { labels: { claim: 'x' } } },
      operatingMode: 'Suspended',
      shutdownTime: '2030-01-01T00:00:00Z',
    },
  }
  t.equal(verifyOrigin(keys, changed, 'owner'), 'valid')
})

t.test("the proof of a pool's stock covers its Pod's metadata until it is adopted", async (t) => {
  const { spec, metadata } = sandbox
  const made = { blueprint: signedBlueprint(sandbox), podMetadata: signedPodMetadata(sandbox) }
  const origin = signOrigin(second, { namespace: 'ns', name: 'pool-x', ownerUid: 'owner', ...made })
  const stock: Sandbox = {
    spec,
    metadata: { ...metadata, labels: { [labels.warmPool]: 'x' }, annotations: { [annotations.origin]: origin } },
  }
  const steered = {
    ...stock,
    spec: { ...spec, podTemplate: { ...spec.podTemplate, metadata: { annotations: { 'io.katacontainers.x': 'y' } } } },
  }
  t.equal(verifyOrigin(keys, stock, 'owner'), 'valid')
  t.equal(verifyOrigin(keys, steered, 'owner'), 'invalid')
  const bare = { ...spec, podTemplate: { spec: spec.podTemplate.spec } }
  t.equal(verifyOrigin(keys, { ...stock, spec: bare }, 'owner'), 'invalid', 'metadata taken away')
  const adopted = { ...steered, metadata: { ...stock.metadata, labels: {} } }
  t.equal(verifyOrigin(keys, adopted, 'owner'), 'valid', 'adoption rewrites it')

  const [id = '', ofBlueprint = '', ofMetadata = ''] = origin.split('.')
  for (const proof of [
    `${id}.${ofBlueprint}`,
    `${id}.${ofBlueprint}.${ofBlueprint}`,
    `${id}.${ofMetadata}.${ofMetadata}`,
  ]) {
    const other = { ...stock, metadata: { ...stock.metadata, annotations: { [annotations.origin]: proof } } }
    t.equal(verifyOrigin(keys, other, 'owner'), 'invalid', proof)
  }
})

t.test('a proof of binding holds for one sandbox and one claim, and is no proof of origin', async (t) => {
  const bound = signBound(second, { sandboxUid: 'sandbox-uid', claimUid: 'claim' })
  const marked = { ...sandbox, metadata: { ...sandbox.metadata, annotations: { [annotations.bound]: bound } } }
  t.equal(verifyBound(keys, marked, 'claim'), 'valid')
  t.equal(verifyBound(keys, marked, 'another'), 'invalid')
  t.equal(verifyBound(keys, { ...marked, metadata: { ...marked.metadata, uid: 'other' } }, 'claim'), 'invalid')
  const swapped = { ...sandbox, metadata: { ...sandbox.metadata, annotations: { [annotations.origin]: bound } } }
  t.equal(verifyOrigin(keys, swapped, 'claim'), 'invalid')
})

t.test('no two different claims share a signature, wherever the borders between their parts lie', async (t) => {
  const part = fc.stringMatching(/^[ab",\][]{0,4}$/)
  const claims = fc.record({ namespace: part, name: part, owner: part })
  fc.assert(
    fc.property(claims, claims, (a, b) => {
      const signedFor = ({ namespace, name, owner }: typeof a) =>
        withOrigin(first, { ...sandbox, metadata: { namespace, name } }, owner).metadata.annotations?.[
          annotations.origin
        ]
      const isSame = a.namespace === b.namespace && a.name === b.name && a.owner === b.owner
      return (signedFor(a) === signedFor(b)) === isSame
    }),
  )
  t.pass()
})

t.test('the verifier judges an object once, and again when the keys or the owner change', async (t) => {
  let inForce: OriginKeys = keys
  const verify = originVerifier(() => inForce)
  const mutable = structuredClone(signed)
  t.equal(verify(mutable, 'owner'), 'valid')
  mutable.spec.service = false
  t.equal(verify(mutable, 'owner'), 'valid', 'remembered')
  t.equal(verify(mutable, 'another'), 'invalid')
  inForce = { current: first }
  t.equal(verify(mutable, 'owner'), 'unknown-key')
})
