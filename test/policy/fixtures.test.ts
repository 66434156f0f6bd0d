import t from 'tap'
import { evaluate } from '../../src/policy/evaluate.ts'
import { rules } from '../../src/policy/rules.ts'
import { loadFixtures } from './fixture.ts'

const fixtures = loadFixtures()

t.test('every rule has a fixture that it allows and one that it denies', async (t) => {
  for (const { id } of rules) {
    for (const verdict of ['allow', 'deny']) {
      const some = fixtures.some((fixture) => fixture.rule === id && fixture.verdict === verdict)
      t.ok(some, `test/fixtures/${id}/${verdict} has a file`)
    }
  }
})

t.test('every fixture belongs to a rule', async (t) => {
  const ids = new Set(rules.map(({ id }) => id))
  t.same(
    [...new Set(fixtures.map(({ rule }) => rule))].filter((rule) => !ids.has(rule)),
    [],
  )
})

for (const { path, rule, verdict, header, subject, context } of fixtures) {
  t.test(path, async (t) => {
    const findings = evaluate(subject, context, {})
    const own = findings.filter((finding) => finding.rule === rule)
    const refusedBy = [...new Set(findings.filter(({ mode }) => mode === 'enforce').map((finding) => finding.rule))]
    if (verdict === 'allow') {
      t.same(own, [])
      t.same(refusedBy, [], 'no rule refuses it')
      return
    }
    const mode = header.mode ?? rules.find(({ id }) => id === rule)?.mode
    const expected = own.find(
      ({ field, message }) =>
        (header.field === undefined || field === header.field) && message.includes(header.message ?? ''),
    )
    t.ok(expected, `${header.field ?? 'any field'}: …${header.message ?? ''}… is among ${JSON.stringify(own, null, 1)}`)
    t.equal(expected?.mode, mode)
    t.ok(expected?.message.startsWith(`${expected.field}: `) && expected.message.endsWith(` (${rule})`))
    t.same(
      refusedBy,
      [...(mode === 'enforce' ? [rule] : []), ...(header.also ?? [])].toSorted(byTable),
      'no other rule refuses it',
    )
  })
}

function byTable(a: string, b: string): number {
  const ids = rules.map(({ id }) => id)
  return ids.indexOf(a) - ids.indexOf(b)
}
