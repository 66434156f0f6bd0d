import { Parser, type Result } from 'tap-parser'
import { stringify } from 'yaml'

export interface TestCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export interface TapReport {
  /** Takes the next piece of the runner's TAP output. */
  write(chunk: string | Uint8Array): void
  /** Ends the stream and answers with what was counted. `ok` is the stream's own verdict, plan and exit codes included. */
  end(): { readonly counts: TestCounts; readonly ok: boolean }
}

/** What one block of the stream (a file, or a test within it) held. */
interface Block {
  tests: number
  points: number
  failed: number
  skipped: number
}

/**
 * Turns the runner's TAP stream into one line per finished file, with the details of what failed, and counts tests.
 * A test is an innermost `t.test` block, however many assertions it makes. A file that ends badly although its tests
 * passed (a crash, a timeout, a wrong exit code) counts as one failure.
 */
export function createTapReport(print: (line: string) => void): TapReport {
  const root = new Parser()
  const total = follow(root, 0)

  function follow(parser: Parser, depth: number): Block {
    const block: Block = { tests: 0, points: 0, failed: 0, skipped: 0 }
    let inner: Block | undefined
    parser.on('child', (child: Parser) => {
      inner = follow(child, depth + 1)
    })
    parser.on('assert', (result: Result) => {
      if (result.closingTestPoint && inner) {
        close(block, inner, result)
        if (depth === 0) print(fileLine(inner, result))
        inner = undefined
      } else {
        point(block, result)
        // At the top stand files alone; a point there is the runner's own complaint.
        if (depth === 0 && !result.ok) block.failed += 1
      }
    })
    parser.on('extra', (text: string) => {
      if (text.trim() !== '') print(text.trimEnd())
    })
    return block
  }

  function close(outer: Block, inner: Block, result: Result): void {
    const isInnermost = inner.tests === 0 && (inner.points > 0 || inner.skipped === 0)
    if (result.skip !== false || result.todo !== false) inner.skipped += 1
    else if (isInnermost && result.ok) inner.tests += 1
    else if (!result.ok && inner.failed === 0) {
      inner.failed += 1
      // The points inside have shown their own details; this failure belongs to the block itself.
      if (inner.points === 0 || inner.tests > 0) print(failureText(result))
    }
    outer.tests += inner.tests
    outer.failed += inner.failed
    outer.skipped += inner.skipped
  }

  function point(block: Block, result: Result): void {
    if (result.skip !== false || result.todo !== false) block.skipped += 1
    else {
      block.points += 1
      if (!result.ok) print(failureText(result))
    }
  }

  return {
    write: (chunk) => void root.write(typeof chunk === 'string' ? chunk : Buffer.from(chunk)),
    end() {
      root.end()
      return {
        counts: { passed: total.tests, failed: total.failed, skipped: total.skipped },
        ok: root.ok && total.failed === 0,
      }
    },
  }
}

function fileLine(file: Block, result: Result): string {
  const parts = [`${file.tests} passed`]
  if (file.failed > 0) parts.push(`${file.failed} failed`)
  if (file.skipped > 0) parts.push(`${file.skipped} skipped`)
  const seconds = ((result.time ?? 0) / 1000).toFixed(1)
  return `${result.ok ? 'ok  ' : 'FAIL'} ${result.name}  ${parts.join(', ')}  ${seconds} s`
}

/** How the runner started the file: the same for every file, so it explains no failure. */
const invocation = new Set(['stdio', 'cwd', 'command', 'args', 'externalID', 'jobId'])

function failureText(result: Result): string {
  const diagnostics = Object.entries(result.diag ?? {}).filter(([key]) => !invocation.has(key))
  const details = diagnostics.length > 0 ? stringify(Object.fromEntries(diagnostics), { lineWidth: 120 }) : ''
  return `not ok: ${result.fullname}\n${details.replace(/^(?=.)/gm, '    ').trimEnd()}`
}
