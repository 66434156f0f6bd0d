import t from 'tap'
import { modes } from '../../src/policy/rule.ts'
import { rulesMarkdown } from '../../src/policy/rules-markdown.ts'
import { rules } from '../../src/policy/rules.ts'

t.test('rule ids are unique and of the form family/name', async (t) => {
  const ids = rules.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length)
  for (const id of ids) t.match(id, /^[a-z]+\/[a-z-]+$/)
})

t.test('every rule says what it refuses, why, and how to relax it', async (t) => {
  for (const { id, refuses, why, relax, mode } of rules) {
    for (const sentence of [refuses, why, relax]) t.match(sentence, /^[A-Za-z].*\.$/, id)
    t.ok(modes.includes(mode), id)
  }
})

t.test('rules of one family stand together, so that the document has one chapter for each', async (t) => {
  const families = rules.map(({ id }) => id.split('/')[0])
  const runs = families.filter((family, i) => family !== families[i - 1])
  t.equal(new Set(runs).size, runs.length, runs.join(' '))
})

t.test('integrity rules are exactly those that protect other tenants', async (t) => {
  t.same(
    rules.filter(({ integrity }) => integrity).map(({ id }) => id),
    [
      'claim/reserved-keys',
      'template/reserved-metadata',
      'sandbox/forged-pool',
      'sandbox/reserved-keys',
      'sandbox/pooled-spec',
      'sandbox/collected-while-claimed',
      'names/hash-collision',
      'pod/forged-sandbox',
      'pod/sandbox-spec',
    ],
  )
})

t.test(
  'a rule by which the reconciler refuses a stored claim has a Ready reason, and only rules on claims do',
  async (t) => {
    const withReason = rules.filter(({ claimReason }) => claimReason !== undefined)
    t.ok(withReason.every(({ kinds }) => kinds.length === 1 && kinds[0] === 'SandboxClaim'))
    const families = /^claim\/(env|volume|label|annotation|runtime|metadata|router|quota)/
    t.same(
      withReason.map(({ id }) => id),
      rules.map(({ id }) => id).filter((id) => families.test(id)),
    )
  },
)

t.test('the document has a heading and the three sentences of every rule', async (t) => {
  const text = rulesMarkdown(rules)
  for (const { id, integrity, refuses, why, relax } of rules) {
    t.ok(text.includes(`### ${id}${integrity ? ' ◆' : ''}\n`), id)
    t.ok(text.includes(`${refuses} ${why}`), id)
    t.ok(text.includes(relax), id)
  }
})

t.test('the document names subresources, and a family that it has no title for', async (t) => {
  const [rule] = rules
  if (!rule) throw new Error('no rules')
  const text = rulesMarkdown([{ ...rule, id: 'novel/rule', subresources: ['', 'scale'] }])
  t.match(text, /## novel\n/)
  t.match(text, /\(\/scale\)/)
})
