import t from 'tap'
import { configuredMode, evaluate } from '../../src/policy/evaluate.ts'
import type { Rule, Subject, Violation } from '../../src/policy/rule.ts'
import { claim, configWith, context, subject } from './subjects.ts'

const violation: Violation = { field: 'spec.env[0]', message: 'it is wrong.' }

function rule(more: Partial<Rule<'SandboxClaim'>> = {}): Rule {
  return {
    id: 'claim/one',
    kinds: ['SandboxClaim'],
    on: ['CREATE', 'UPDATE'],
    judges: 'state',
    integrity: false,
    mode: 'enforce',
    refuses: 'One.',
    why: 'One.',
    relax: 'One.',
    check: () => [violation],
    ...more,
  }
}

const modesOf = (given: Subject, rules: readonly Rule[], namespace = {}, config = configWith(() => {})) =>
  evaluate(given, context({}, config), namespace, rules).map(({ mode }) => mode)

t.test('a finding carries the field, the message with the rule id, the mode and the Ready reason', async (t) => {
  const found = evaluate(subject('SandboxClaim', claim()), context(), {}, [rule({ claimReason: 'InvalidMetadata' })])
  t.same(found, [
    {
      rule: 'claim/one',
      field: 'spec.env[0]',
      message: 'spec.env[0]: it is wrong. (claim/one)',
      mode: 'enforce',
      claimReason: 'InvalidMetadata',
    },
  ])
})

t.test('a rule judges only its kinds, operations and subresources', async (t) => {
  t.same(modesOf(subject('SandboxClaim', claim()), [rule({ kinds: ['Pod'] as never })]), [])
  t.same(modesOf(subject('SandboxClaim', claim()), [rule({ on: ['DELETE'] })]), [])
  const scale = subject('SandboxClaim', claim(), { subresource: 'scale' })
  t.same(modesOf(scale, [rule()]), [])
  t.same(modesOf(scale, [rule({ subresources: ['', 'scale'] })]), ['enforce'])
})

t.test('an exact rule id beats a family, and a longer family a shorter one', async (t) => {
  const config = configWith(
    (c) => (c.rules = { '*': 'off', 'claim/*': 'audit', 'claim/env*': 'warn', 'claim/env-name': 'enforce' }),
  )
  const modeOf = (id: string) => configuredMode({ id, mode: 'enforce' }, config)
  t.equal(modeOf('claim/env-name'), 'enforce')
  t.equal(modeOf('claim/env-from'), 'warn')
  t.equal(modeOf('claim/name'), 'audit')
  t.equal(modeOf('pool/name'), 'off')
  t.equal(
    configuredMode(
      { id: 'pool/name', mode: 'warn' },
      configWith(() => {}),
    ),
    'warn',
  )
})

t.test('a rule that is off does not run', async (t) => {
  const config = configWith((c) => (c.rules = { 'claim/one': 'off' }))
  const check = () => t.fail('it ran') as never
  t.same(modesOf(subject('SandboxClaim', claim()), [rule({ check })], {}, config), [])
})

t.test('a namespace lowers a rule and never raises it', async (t) => {
  const given = subject('SandboxClaim', claim())
  const label = (mode: string) => ({ labels: { 'sandgate.dev/admission': mode } })
  t.same(modesOf(given, [rule()], label('warn')), ['warn'])
  t.same(modesOf(given, [rule()], label('off')), [])
  t.same(modesOf(given, [rule({ mode: 'audit' })], label('enforce')), ['audit'])
  t.same(modesOf(given, [rule()], label('disabled')), ['enforce'], 'a word that is no mode changes nothing')
  t.equal(evaluate(given, context(), label('audit'), [rule()])[0]?.lowered, 'namespace')
})

t.test('neither integrity rules nor locked namespaces listen to the label', async (t) => {
  const label = { labels: { 'sandgate.dev/admission': 'off' } }
  t.same(modesOf(subject('SandboxClaim', claim()), [rule({ integrity: true })], label), ['enforce'])
  const locked = configWith((c) => (c.admission.lockedNamespaces = ['default']))
  t.same(modesOf(subject('SandboxClaim', claim()), [rule()], label, locked), ['enforce'])
})

t.test('the configuration can lower an integrity rule', async (t) => {
  const config = configWith((c) => (c.rules = { 'claim/one': 'audit' }))
  t.same(modesOf(subject('SandboxClaim', claim()), [rule({ integrity: true })], {}, config), ['audit'])
})

t.test('whoever breaks glass is warned instead of refused, and the finding says so', async (t) => {
  const given = subject('SandboxClaim', claim(), { actor: 'break-glass' })
  t.match(evaluate(given, context(), {}, [rule({ integrity: true })]), [{ mode: 'warn', lowered: 'break-glass' }])
  const audit = evaluate(given, context(), {}, [rule({ mode: 'audit' })])
  t.match(audit, [{ mode: 'audit' }])
  t.equal(audit[0]?.lowered, undefined)
})

t.test('a violation can be softer than its rule, and no harder', async (t) => {
  const given = subject('SandboxClaim', claim())
  const soft = (mode: 'enforce' | 'audit') => rule({ mode, check: () => [{ ...violation, atMost: 'warn' }] })
  t.same(modesOf(given, [soft('enforce')]), ['warn'])
  t.same(modesOf(given, [soft('audit')]), ['audit'])
})

t.test('of an object that is being deleted, only what nobody may change is judged', async (t) => {
  const dying = claim({}, { deletionTimestamp: '2026-01-01T00:00:00Z' })
  const leaving = subject('SandboxClaim', dying, { oldObject: dying })
  t.same(modesOf(leaving, [rule(), rule({ judges: 'change' }), rule({ integrity: true })]), [])
  t.same(modesOf(leaving, [rule({ judges: 'change', integrity: true })]), ['enforce'])
  t.same(modesOf(subject('SandboxClaim', dying, { operation: 'DELETE' }), [rule({ on: ['DELETE'] })]), ['enforce'])
  const forged = subject('SandboxClaim', dying, { oldObject: claim() })
  t.same(
    modesOf(forged, [rule({ judges: 'change' })]),
    ['enforce'],
    'a deletionTimestamp that the old object has not does not count',
  )
})

t.test('a rule that throws counts as violated and hides no other', async (t) => {
  const broken = rule({
    id: 'claim/broken',
    check: () => {
      throw new TypeError('no such thing')
    },
  })
  const strange = rule({
    check: () => {
      // oxlint-disable-next-line no-throw-literal
      throw 'a string'
    },
  })
  const found = evaluate(subject('SandboxClaim', claim()), context(), {}, [broken, strange, rule()])
  t.same(
    found.map(({ mode }) => mode),
    ['enforce', 'enforce', 'enforce'],
  )
  t.match(found[0]?.message, /could not be judged \(no such thing\).*\(claim\/broken\)$/)
  t.match(found[1]?.message, /could not be judged \(a string\)/)
})

t.test('on UPDATE, a state violation that the old object had is a warning, in another place too', async (t) => {
  const check = ({ object }: Subject<'SandboxClaim'>) =>
    (object.spec.env ?? []).flatMap(({ name }, i) =>
      name.startsWith('BAD') ? [{ field: `spec.env[${i}].name`, message: `${name} is bad.` }] : [],
    )
  const old = claim({ env: [{ name: 'BAD_A' }, { name: 'BAD_A' }] })
  const update = (names: string[]) =>
    subject('SandboxClaim', claim({ env: names.map((name) => ({ name })) }), { oldObject: old })
  t.same(modesOf(update(['BAD_A', 'BAD_A']), [rule({ check })]), ['warn', 'warn'])
  t.same(modesOf(update(['GOOD', 'BAD_A']), [rule({ check })]), ['warn'])
  t.same(modesOf(update(['BAD_A', 'BAD_B']), [rule({ check })]), ['warn', 'enforce'])
  t.same(
    modesOf(update(['BAD_A', 'BAD_A', 'BAD_A']), [rule({ check })]),
    ['warn', 'warn', 'enforce'],
    'one more of a kind is new',
  )
  t.equal(evaluate(update(['BAD_A']), context(), {}, [rule({ check })])[0]?.lowered, 'ratchet')
})

t.test('change rules know no ratchet', async (t) => {
  t.same(modesOf(subject('SandboxClaim', claim(), { oldObject: claim() }), [rule({ judges: 'change' })]), ['enforce'])
})

t.test('what the old object would break under other facts is no excuse', async (t) => {
  const about = rule({ factsAbout: ({ spec }) => spec.warmPoolRef })
  const update = (name: string) => subject('SandboxClaim', claim({ warmPoolRef: { name } }), { oldObject: claim() })
  t.same(modesOf(update('python'), [about]), ['warn'])
  t.same(modesOf(update('other'), [about]), ['enforce'])
})

t.test('an UPDATE without its old object is judged like a new object', async (t) => {
  t.same(modesOf(subject('SandboxClaim', claim(), { operation: 'UPDATE' }), [rule()]), ['enforce'])
})

t.test('an old object that cannot be read is no excuse for the new one, and no fault', async (t) => {
  const about = rule({ factsAbout: ({ spec }) => spec.warmPoolRef.name })
  const misshapen = { metadata: { name: 'task' } } as never
  t.same(modesOf(subject('SandboxClaim', claim(), { oldObject: misshapen }), [about]), ['enforce'])
})
