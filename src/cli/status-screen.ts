import { plain, type Paint } from './paint.ts'
import type { ClaimLine, PoolLine, RefusalLine, StatusReport } from './status-report.ts'
import { tableLines, type Cell } from './table.ts'

export interface ScreenOptions {
  /** Milliseconds since the epoch, by the API server's clock. */
  readonly now: number
  /** Whether the objects are of more than one namespace. */
  readonly withNamespace: boolean
  readonly paint: Paint
  /** Columns and lines to keep to; absent: as many as it takes. */
  readonly width?: number | undefined
  readonly height?: number | undefined
}

/** Refusals shown: the last ones are those that somebody is looking for. */
const shownRefusals = 10
/** Headings, and empty lines between the tables. */
const linesAroundTables = 8

/** The report as tables. With a height, claims are left out until it fits, the oldest first. */
export function statusLines(report: StatusReport, options: ScreenOptions): string[] {
  const { height = Infinity } = options
  const refusals = report.refusals.slice(0, shownRefusals)
  const room = Math.max(3, height - linesAroundTables - report.pools.length - refusals.length)
  const claims = report.claims.slice(0, report.claims.length > room ? room - 1 : room)
  const lines = [
    ...table('Pools', poolRows(report.pools, options), options),
    '',
    ...table('Claims', claimRows(claims, options), options),
    ...(claims.length < report.claims.length ? [`… and ${report.claims.length - claims.length} earlier`] : []),
    '',
    ...table('Refused lately', refusalRows(refusals, options), options),
  ]
  return lines.slice(0, height)
}

function table(title: string, rows: readonly (readonly Cell[])[], { paint, width }: ScreenOptions): string[] {
  if (rows.length === 1) return [paint.dim(`${title}: none`)]
  const [head, ...body] = tableLines(rows, width)
  return [paint.bold(head ?? ''), ...body]
}

function poolRows(pools: readonly PoolLine[], options: ScreenOptions): Cell[][] {
  const { paint } = options
  const rows = pools.map((pool): Cell[] => [
    ...namespaced(pool, options),
    cell(pool.name),
    cell(pool.kind),
    cell(pool.desired),
    { text: String(pool.ready), paint: pool.ready >= pool.desired ? paint.green : paint.yellow },
    cell(pool.creating),
    pool.stale ? { text: String(pool.stale), paint: paint.yellow } : cell(pool.stale ?? '-'),
    pool.trouble ? { text: plain(`${pool.trouble.reason}: ${pool.trouble.message}`), paint: paint.red } : cell(''),
  ])
  return [heads(options, 'POOL', 'KIND', 'DESIRED', 'READY', 'CREATING', 'STALE', 'TROUBLE'), ...rows]
}

function claimRows(claims: readonly ClaimLine[], options: ScreenOptions): Cell[][] {
  const { paint, now } = options
  const rows = claims.map((claim): Cell[] => [
    ...namespaced(claim, options),
    cell(claim.name),
    cell(claim.pool),
    claim.ready
      ? { text: 'Ready', paint: paint.green }
      : { text: plain(claim.reason ?? 'Pending'), paint: paint.yellow },
    cell(claim.sandbox ?? '-'),
    cell(claim.launchType ?? '-'),
    cell(claim.since === undefined ? '-' : age(now - Date.parse(claim.since))),
    cell(latency(claim.latencySeconds)),
  ])
  return [heads(options, 'CLAIM', 'POOL', 'STATUS', 'SANDBOX', 'LAUNCH', 'SINCE', 'LATENCY'), ...rows]
}

function refusalRows(refusals: readonly RefusalLine[], options: ScreenOptions): Cell[][] {
  const rows = refusals.map((refusal): Cell[] => [
    ...namespaced(refusal, options),
    { text: plain(refusal.object), paint: options.paint.red },
    cell(refusal.count),
    cell(age(options.now - Date.parse(refusal.lastAt))),
    cell(plain(refusal.message)),
  ])
  return [heads(options, 'REFUSED', 'TIMES', 'LAST', 'BECAUSE'), ...rows]
}

function heads({ withNamespace }: ScreenOptions, ...names: string[]): Cell[] {
  return [...(withNamespace ? ['NAMESPACE'] : []), ...names].map(cell)
}

function namespaced({ namespace }: { namespace: string }, { withNamespace }: ScreenOptions): Cell[] {
  return withNamespace ? [cell(namespace)] : []
}

function cell(value: string | number): Cell {
  return { text: String(value) }
}

/** The condition counts whole seconds: below one, it is not known how far. */
function latency(seconds: number | undefined): string {
  if (seconds === undefined) return '-'
  return seconds === 0 ? '<1s' : `${seconds}s`
}

/** A length of time in one unit, which changes once there are two of the next: `119s`, `5m`, `3h`, `2d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (!Number.isFinite(seconds)) return '-'
  if (seconds < 120) return `${seconds}s`
  if (seconds < 120 * 60) return `${Math.floor(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}
