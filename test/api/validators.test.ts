import t from 'tap'
import {
  kinds,
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../../src/api/kinds.ts'
import type { Kind } from '../../src/api/kind.ts'
import { createValidators } from '../../src/api/validators.ts'

const validators = createValidators(kinds)
const problems = (kind: Kind, spec?: unknown) =>
  validators.problemsOf(kind, { metadata: { name: 'x' }, ...(spec === undefined ? {} : { spec }) })

t.test('an object that fits its schema has no problems', async (t) => {
  t.same(problems(sandboxClaimKind, { warmPoolRef: { name: 'pool' }, env: [{ name: 'A', value: 'b' }] }), [])
  t.same(problems(sandboxTemplateKind, { podTemplate: { spec: { containers: [{ anything: 'goes' }] } } }), [])
  t.same(problems(sandboxKind, { podTemplate: { spec: {} }, shutdownTime: '2030-01-01T00:00:00Z' }), [])
  t.same(problems(sandboxSetKind, { replicas: 3, updateStrategy: { maxUnavailable: '20%' } }), [])
  t.same(problems(sandboxSetKind, { replicas: 3, updateStrategy: { maxUnavailable: 2 } }), [])
})

const rows: readonly { because: string; kind: Kind; spec?: unknown; field: string; message: string }[] = [
  { because: 'no spec', kind: sandboxClaimKind, field: 'spec', message: 'is required' },
  {
    because: 'a required field is missing',
    kind: sandboxClaimKind,
    spec: { warmPoolRef: {} },
    field: 'spec.warmPoolRef.name',
    message: 'is required',
  },
  {
    because: 'a value is none of the choices',
    kind: sandboxWarmPoolKind,
    spec: { sandboxTemplateRef: { name: 'a' }, updateStrategy: { type: 'Sometimes' } },
    field: 'spec.updateStrategy.type',
    message: 'must be one of Recreate, OnReplenish, not "Sometimes"',
  },
  {
    because: 'a number is too small',
    kind: sandboxSetKind,
    spec: { replicas: -1 },
    field: 'spec.replicas',
    message: 'must be >= 0, not -1',
  },
  {
    because: 'a number stands where text belongs, which is not converted',
    kind: sandboxClaimKind,
    spec: { warmPoolRef: { name: 'p' }, env: [{ name: 'A', value: 1 }] },
    field: 'spec.env[0].value',
    message: 'must be string, not 1',
  },
  {
    because: 'a time is not a time',
    kind: sandboxClaimKind,
    spec: { warmPoolRef: { name: 'p' }, lifecycle: { shutdownTime: 'tomorrow' } },
    field: 'spec.lifecycle.shutdownTime',
    message: 'must be a date-time, not "tomorrow"',
  },
  {
    because: 'a count or percentage is neither',
    kind: sandboxSetKind,
    spec: { replicas: 1, scaleStrategy: { maxUnavailable: true } },
    field: 'spec.scaleStrategy.maxUnavailable',
    message: 'must be a number or a string, not true',
  },
  {
    because: 'a label has a value that is not text',
    kind: sandboxClaimKind,
    spec: { warmPoolRef: { name: 'p' }, additionalPodMetadata: { labels: { 'a.b/c~d': 1 } } },
    field: 'spec.additionalPodMetadata.labels["a.b/c~d"]',
    message: 'must be string, not 1',
  },
]

for (const { because, kind, spec, field, message } of rows) {
  t.test(`${because}: the one problem names the field and what it takes`, async (t) => {
    t.same(problems(kind, spec), [{ field, message }])
  })
}

t.test('all problems come at once', async (t) => {
  const found = problems(sandboxClaimKind, { warmPoolRef: { name: '', kind: 'Pool' } })
  t.same(
    found.map(({ field }) => field),
    ['spec.warmPoolRef.name', 'spec.warmPoolRef.kind'],
  )
})

t.test('the object is left as it is, without defaults', async (t) => {
  const pool = { metadata: { name: 'x' }, spec: { sandboxTemplateRef: { name: 'a' }, updateStrategy: {} } }
  validators.problemsOf(sandboxWarmPoolKind, pool)
  t.same(pool.spec, { sandboxTemplateRef: { name: 'a' }, updateStrategy: {} })
})

t.test('a kind that was not compiled is a fault of the caller', async (t) => {
  const few = createValidators([sandboxClaimKind])
  t.throws(() => few.problemsOf(sandboxKind, { metadata: {} }), /Sandbox/)
})
