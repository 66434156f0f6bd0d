import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readAuditLog, tally } from '../../devcluster/audit.ts'

const line = (auditID: string, second: number, changes: object = {}): string =>
  JSON.stringify({
    auditID,
    verb: 'create',
    user: { username: 'ann' },
    objectRef: { resource: 'pods', namespace: 'n' },
    responseStatus: { code: 201 },
    requestReceivedTimestamp: `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z`,
    stageTimestamp: `2026-01-01T00:00:${String(second).padStart(2, '0')}.005000Z`,
    ...changes,
  })

async function logOf(t: Test, ...lines: string[]): Promise<string> {
  const file = join(t.testdir({}), 'audit.jsonl')
  await writeFile(file, lines.join('\n'))
  return file
}

t.test("a user's requests come in the order in which they arrived, without those of others", async (t) => {
  const file = await logOf(
    t,
    line('b', 2, { verb: 'patch', objectRef: { resource: 'pods', subresource: 'status', namespace: 'n', name: 'p' } }),
    line('a', 1, { annotations: { 'a.example.com/denied': 'x/y' } }),
    line('c', 3, { user: { username: 'ann-marie' } }),
    line('d', 4, { user: { username: 'bob' }, userAgent: 'ann' }),
    '{"auditID":"e","user":{"username":"ann"},"requestRec',
  )
  const requests = await readAuditLog(file, 'ann')
  t.strictSame(requests, [
    {
      verb: 'create',
      resource: 'pods',
      namespace: 'n',
      code: 201,
      annotations: { 'a.example.com/denied': 'x/y' },
      receivedAt: Date.UTC(2026, 0, 1, 0, 0, 1),
      durationMs: 5,
    },
    {
      verb: 'patch',
      resource: 'pods/status',
      namespace: 'n',
      name: 'p',
      code: 201,
      receivedAt: Date.UTC(2026, 0, 1, 0, 0, 2),
      durationMs: 5,
    },
  ])
  t.strictSame(tally([...requests, ...requests.slice(0, 1)]), { 'create pods': 2, 'patch pods/status': 1 })
})

t.test('what was asked in the name of another counts as the other’s', async (t) => {
  const file = await logOf(t, line('a', 1, { impersonatedUser: { username: 'bob' } }), line('b', 2))
  t.equal((await readAuditLog(file, 'bob')).length, 1)
  t.equal((await readAuditLog(file, 'ann')).length, 1)
})

t.test('what arrived before `since` is left out', async (t) => {
  const file = await logOf(t, line('a', 1), line('b', 2))
  const requests = await readAuditLog(file, 'ann', Date.UTC(2026, 0, 1, 0, 0, 2))
  t.equal(requests.length, 1)
})

t.test('a watch counts once, though the log has its beginning and its end', async (t) => {
  const file = await logOf(t, line('w', 1, { verb: 'watch' }), line('w', 1, { verb: 'watch' }))
  t.strictSame(tally(await readAuditLog(file, 'ann')), { 'watch pods': 1 })
})
