import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { KubeClient } from '../kube/client.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import { createLogger } from '../telemetry/logger.ts'
import { paintFor, plain } from './paint.ts'
import { statusReport, type StatusReport } from './status-report.ts'
import { statusLines } from './status-screen.ts'
import { followObjects, type Scope } from './status-source.ts'

export const statusFormats = ['table', 'json'] as const
export type StatusFormat = (typeof statusFormats)[number]

export interface WatchOptions {
  readonly client: KubeClient
  readonly scope: Scope
  readonly config: Config | undefined
  readonly clock: Clock
  readonly format: StatusFormat
  readonly out: NodeJS.WriteStream
  /** A line above the tables. */
  readonly header?: string
}

/** Changes come in bursts: one claim makes half a dozen within some milliseconds. */
const settleMs = 200
/** Ages grow without anything changing. */
const tickMs = 1000

const home = '\u001B[H'
const clearScreen = '\u001B[2J'
const clearToEndOfLine = '\u001B[K'
const clearBelow = '\u001B[J'

/**
 * Shows the status and keeps it up to date until `signal` ends: drawn in place on a terminal, printed again after each
 * change anywhere else. With the format json each is one line.
 */
export async function watchStatus(options: WatchOptions, signal: AbortSignal): Promise<void> {
  const { client, scope, config, clock, format, out } = options
  const isScreen = out.isTTY && format === 'table'
  const notice = createNotice(clock)
  const followed = followObjects(client, scope, clock, isScreen ? notice.log : createLogger({ level: 'warn' }))
  const report = () => statusReport(followed.current(), config)
  const show = isScreen ? screen(options, notice) : stream(options)

  let timer: Timer | undefined
  let dueAt = Infinity
  /** The earliest wins, so that a burst of changes does not put off what the first of them asked for. */
  const showWithin = (delayMs: number) => {
    const at = clock.monotonic() + delayMs
    if (at >= dueAt) return
    timer?.cancel()
    dueAt = at
    timer = clock.setTimer(() => {
      dueAt = Infinity
      show(report())
      if (isScreen) showWithin(tickMs)
    }, delayMs)
  }
  followed.onChange(() => showWithin(settleMs))
  const onResize = () => showWithin(0)
  if (isScreen) out.on('resize', onResize)
  await followed.run(signal)
  out.off('resize', onResize)
  timer?.cancel()
}

/** Draws over what was drawn before. */
function screen(options: WatchOptions, notice: Notice): (report: StatusReport) => void {
  const { out, header, scope } = options
  const paint = paintFor(out)
  out.write(clearScreen)
  return (report) => {
    const { columns, rows } = out
    const around = [...(header === undefined ? [] : [header, '']), ...notice.lines()]
    const lines = statusLines(report, {
      now: serverNow(options),
      withNamespace: scope.namespace === undefined,
      paint,
      width: columns,
      // The cursor stands in a line of its own below.
      height: rows - around.length - 1,
    })
    const all = [...around, ...lines].map((line) => `${line}${clearToEndOfLine}\n`)
    out.write(`${home}${all.join('')}${clearBelow}`)
  }
}

/** Prints what differs from what was printed before. */
function stream(options: WatchOptions): (report: StatusReport) => void {
  const { out, header, scope, format } = options
  const paint = paintFor(out)
  let before: string | undefined
  if (header !== undefined) out.write(`${header}\n`)
  return (report) => {
    // Ages are no change: times are compared.
    const content = JSON.stringify(report)
    if (content === before) return
    before = content
    const lines = () => statusLines(report, { now: serverNow(options), withNamespace: !scope.namespace, paint })
    out.write(format === 'json' ? `${content}\n` : `${lines().join('\n')}\n\n`)
  }
}

function serverNow({ client, clock }: Pick<WatchOptions, 'client' | 'clock'>): number {
  return clock.now() + client.serverClockOffsetMs()
}

interface Notice {
  readonly log: Logger
  lines(): string[]
}

/** What the connection has to say, shown for a while: a log would run through the tables. */
function createNotice(clock: Clock): Notice {
  const shownMs = 30_000
  let last: { readonly text: string; readonly at: number } | undefined
  const destination = {
    write(line: string) {
      const { level, msg, err } = JSON.parse(line) as { level: string; msg: string; err?: { message?: string } }
      last = { text: plain(`${level}: ${msg}${err?.message === undefined ? '' : `: ${err.message}`}`), at: clock.now() }
    },
  }
  return {
    log: createLogger({ level: 'warn', pretty: false, destination }),
    lines: () => (last && clock.now() - last.at < shownMs ? [last.text, ''] : []),
  }
}
