/** Writes the demo to a terminal: numbered steps, what a user would type, and what came back. */
export interface Screen {
  step(title: string): void
  command(text: string): void
  output(text: string): void
  result(text: string): void
  /** Resolves with what `work` does; says after a while what it waits for. */
  wait<T>(what: string, work: Promise<T>): Promise<T>
}

const patienceMs = 5_000

/** Colours only on a terminal, and not when NO_COLOR is set. */
export function createScreen(out: NodeJS.WriteStream = process.stdout): Screen {
  const isColoured = out.isTTY && !process.env['NO_COLOR']
  const paint = (code: number, text: string) => (isColoured ? `\u001B[${code}m${text}\u001B[0m` : text)
  const indent = (text: string) => text.trimEnd().replaceAll(/^/gm, '    ')
  let steps = 0
  return {
    step: (title) => void out.write(`\n${paint(1, `${++steps}. ${title}`)}\n`),
    command: (text) => void out.write(`  ${paint(36, `$ ${text}`)}\n`),
    output: (text) => void (text.trim() && out.write(`${indent(text)}\n`)),
    result: (text) => void out.write(`  ${paint(32, '✓')} ${text}\n`),
    async wait(what, work) {
      const startedAt = Date.now()
      const timer = setInterval(() => {
        out.write(`    … ${what} (${Math.round((Date.now() - startedAt) / 1000)} s)\n`)
      }, patienceMs)
      try {
        return await work
      } finally {
        clearInterval(timer)
      }
    },
  }
}
