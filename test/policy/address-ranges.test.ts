import * as fc from 'fast-check'
import t from 'tap'
import { coverage, overlaps, parseCidr, subtract, type AddressRange } from '../../src/policy/address-ranges.ts'

const range = (cidr: string): AddressRange => {
  const parsed = parseCidr(cidr)
  if (!parsed) throw new Error(cidr)
  return parsed
}

t.test('IPv4 blocks, from one address to all', async (t) => {
  t.same(parseCidr('10.0.0.0/8'), { family: 4, first: 0x0a000000n, last: 0x0affffffn })
  t.same(parseCidr('1.2.3.4/32'), { family: 4, first: 0x01020304n, last: 0x01020304n })
  t.same(parseCidr('0.0.0.0/0'), { family: 4, first: 0n, last: 0xffffffffn })
  t.same(parseCidr('10.1.2.3/8'), parseCidr('10.0.0.0/8'), 'bits beyond the prefix are dropped')
})

t.test('IPv6 blocks in every notation', async (t) => {
  t.same(parseCidr('::/0'), { family: 6, first: 0n, last: (1n << 128n) - 1n })
  t.same(parseCidr('2001:db8::1/128'), parseCidr('2001:0DB8:0:0:0:0:0:1/128'))
  t.same(parseCidr('::1/128')?.first, 1n)
  t.same(parseCidr('1::/16')?.first, 1n << 112n)
  t.same(parseCidr('::ffff:10.0.0.1/128')?.first, 0xffff0a000001n)
})

t.test('what is no block is undefined', async (t) => {
  const wrong = [
    '',
    '10.0.0.0',
    '10.0.0/8',
    '10.0.0.256/8',
    '10.0.0.0/33',
    '10.0.0.0/x',
    '::/129',
    '1::2::3/64',
    '1:2:3:4:5:6:7/64',
    '1:2:3:4:5:6:7:8:9/64',
    '1:2:3:4:5:6:7:8::/64',
    'g::/16',
    '::1.2.3/128',
    '::ffff:1.2.3.400/128',
    '12345::/16',
  ]
  for (const cidr of wrong) t.equal(parseCidr(cidr), undefined, cidr)
})

t.test('a hole leaves what lies on either side of it', async (t) => {
  t.same(subtract(range('10.0.0.0/30'), [range('10.0.0.1/32')]), [
    { family: 4, first: 0x0a000000n, last: 0x0a000000n },
    { family: 4, first: 0x0a000002n, last: 0x0a000003n },
  ])
  t.same(subtract(range('10.0.0.0/30'), [range('10.0.0.0/8')]), [])
  t.same(subtract(range('10.0.0.0/30'), [range('::/0'), range('11.0.0.0/8')]), [range('10.0.0.0/30')])
})

t.test('families never overlap', async (t) => {
  t.notOk(overlaps(range('0.0.0.0/0'), range('::/0')))
  t.ok(overlaps(range('10.0.0.0/8'), range('10.9.0.0/16')))
})

t.test('coverage counts each address once, in any order of blocks', async (t) => {
  const space: AddressRange = { family: 4, first: 0n, last: 255n }
  const block = fc.tuple(fc.nat(255), fc.nat(255)).map(([a, b]): AddressRange => ({
    family: 4,
    first: BigInt(Math.min(a, b)),
    last: BigInt(Math.max(a, b)),
  }))
  fc.assert(
    fc.property(fc.array(block, { maxLength: 6 }), (blocks) => {
      const counted = Array.from({ length: 256 }, (_, i) => BigInt(i)).filter((i) =>
        blocks.some(({ first, last }) => first <= i && i <= last),
      )
      t.equal(coverage(blocks, space), BigInt(counted.length))
    }),
  )
})
