import t from 'tap'
import { annotations } from '../../src/api/vocabulary.ts'
import { isOurs } from '../../src/planning/claim-ownership.ts'
import { signBound, withOrigin, type OriginKeys } from '../../src/planning/origin.ts'
import { aClaim, aSandbox } from './claim-fixtures.ts'

const keys: OriginKeys = { current: { id: 'k1', secret: Buffer.alloc(32, 1) } }
const otherKeys: OriginKeys = { current: { id: 'k2', secret: Buffer.alloc(32, 2) } }
const claim = aClaim()

function bound(by: OriginKeys, claimUid = 'claim-uid') {
  const proof = signBound(by.current, { sandboxUid: 'pool-abc-uid', claimUid })
  return aSandbox({ claim, metadata: { annotations: { [annotations.bound]: proof } } })
}

t.test(
  'a sandbox is the claim’s by its controller and by a proof that it was bound to it or made for it',
  async (t) => {
    t.ok(isOurs(bound(keys), claim, keys))
    t.ok(isOurs(withOrigin(keys.current, aSandbox({ claim }), 'claim-uid'), claim, keys))
  },
)

t.test('neither an owner reference without a proof nor a proof without an owner reference will do', async (t) => {
  t.notOk(isOurs(aSandbox({ claim }), claim, keys))
  t.notOk(isOurs(bound(keys, 'another-uid'), claim, keys))
  const { ownerReferences: _none, ...metadata } = bound(keys).metadata
  t.notOk(isOurs({ ...bound(keys), metadata }, claim, keys))
})

t.test('when the key is lost, the name that only we write into the status stands in for the proof', async (t) => {
  t.notOk(isOurs(bound(otherKeys), claim, keys))
  t.ok(isOurs(bound(otherKeys), aClaim({ status: { sandbox: { name: 'pool-abc' } } }), keys))
})
