import t from 'tap'
import { createTapReport } from './tap-report.ts'

function reportOf(tap: string) {
  const lines: string[] = []
  const report = createTapReport((line) => lines.push(line))
  report.write(tap)
  return { ...report.end(), lines }
}

const file = (name: string, body: string, ok = true) =>
  `# Subtest: ${name}\n${body.replace(/^(?=.)/gm, '    ')}${ok ? '' : 'not '}ok 1 - ${name} # time=1500ms\n`
const test = (name: string, ...points: string[]) =>
  `# Subtest: ${name}\n${points.map((point) => `    ${point}\n`).join('')}    1..${points.length}\n${
    points.some((point) => point.startsWith('not')) ? 'not ' : ''
  }ok 1 - ${name}\n`

t.test('a test counts once, however many assertions it makes', async (t) => {
  const tap = `TAP version 14\n${file('a.test.ts', `${test('adds', 'ok 1 - x', 'ok 2 - y')}1..1\n`)}1..1\n`
  const { counts, ok, lines } = reportOf(tap)
  t.same(counts, { passed: 1, failed: 0, skipped: 0 })
  t.ok(ok)
  t.same(lines, ['ok   a.test.ts  1 passed  1.5 s'])
})

t.test('a failed test counts once and shows its assertion', async (t) => {
  const tap = `TAP version 14\n${file('a.test.ts', `${test('adds', 'not ok 1 - x', 'not ok 2 - y')}1..1\n`, false)}1..1\n`
  const { counts, ok, lines } = reportOf(tap)
  t.same(counts, { passed: 0, failed: 1, skipped: 0 })
  t.notOk(ok)
  t.match(lines.join('\n'), 'not ok: a.test.ts > adds > x')
  t.match(lines.at(-1), 'FAIL a.test.ts  0 passed, 1 failed')
})

t.test('a file that dies after its tests passed is a failure', async (t) => {
  const tap = `TAP version 14\n${file('a.test.ts', `${test('adds', 'ok 1 - x')}1..1\n`, false)}1..1\n`
  const { counts, ok } = reportOf(tap)
  t.same(counts, { passed: 1, failed: 1, skipped: 0 })
  t.notOk(ok)
})

t.test('a skipped test is neither passed nor failed', async (t) => {
  const tap = `TAP version 14\n${file('a.test.ts', 'ok 1 - later # SKIP not yet\nok 2 - some day # TODO\n1..2\n')}1..1\n`
  t.same(reportOf(tap).counts, { passed: 0, failed: 0, skipped: 2 })
})

t.test('output that breaks off is not a success', async (t) => {
  const { ok } = reportOf(`TAP version 14\n${file('a.test.ts', `${test('adds', 'ok 1 - x')}1..1\n`)}1..2\n`)
  t.notOk(ok)
})

t.test('no output at all is not a success', async (t) => {
  t.same(reportOf('').counts, { passed: 0, failed: 0, skipped: 0 })
})
