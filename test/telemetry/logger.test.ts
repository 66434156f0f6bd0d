import { PassThrough } from 'node:stream'
import t from 'tap'
import { KubeError } from '../../src/kube/errors.ts'
import { createLogger } from '../../src/telemetry/logger.ts'
import type { LoggerOptions } from '../../src/telemetry/logger.ts'

/** A logger whose output is kept as text. */
function start(options: Omit<LoggerOptions, 'destination'>) {
  const destination = new PassThrough()
  let text = ''
  destination.on('data', (chunk: Buffer) => (text += chunk.toString()))
  return { log: createLogger({ ...options, destination }), text: () => text }
}

t.test('a line is one JSON object: level by name, time in words, fields beside the message', (t) => {
  const { log, text } = start({ level: 'info', pretty: false })
  log.info({ pool: 'python', want: 3 }, 'creating sandboxes')
  log.debug('unheard')
  const lines = text().trimEnd().split('\n')
  t.equal(lines.length, 1)
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>
  t.same(Object.keys(line), ['level', 'time', 'pool', 'want', 'msg'])
  t.match(line, { level: 'info', pool: 'python', want: 3, msg: 'creating sandboxes' })
  t.match(line['time'], /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  t.end()
})

t.test('an error is told with its code, its reason and what lay beneath', (t) => {
  const { log, text } = start({ level: 'info', pretty: false })
  const cause = new Error('socket closed')
  log.error({ error: new KubeError('OutcomeUnknown', 'patch failed', { status: 504, reason: 'Timeout', cause }) }, 'x')
  const { error } = JSON.parse(text()) as { error: object }
  t.match(error, { type: 'KubeError', code: 'OutcomeUnknown', status: 504, reason: 'Timeout', message: /patch failed/ })
  t.match(error, { stack: /socket closed/ })
  t.end()
})

t.test('readable lines have colours only when asked for', async (t) => {
  for (const colors of [true, false]) {
    const { log, text } = start({ level: 'info', pretty: true, colors })
    log.warn({ pool: 'python' }, 'pool is empty')
    await new Promise((resolve) => void setImmediate(resolve))
    t.match(text(), /WARN.*pool is empty/)
    t.match(text(), /pool.*python/)
    // eslint-disable-next-line no-control-regex
    t.equal(/\u001b\[/.test(text()), colors)
  }
})
