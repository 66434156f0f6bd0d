import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { generatedFiles } from './generated-files.ts'

/**
 * Writes every file that is derived from the source: `npm run generate`. With `--check` nothing is written; files that
 * differ from what the source says are listed and the exit code is 1, so that CI notices a forgotten run.
 */
const root = new URL('../', import.meta.url)
const checkOnly = process.argv.includes('--check')
const stale: string[] = []

for (const [path, text] of generatedFiles()) {
  const file = fileURLToPath(new URL(path, root))
  if ((await textOf(file)) === text) continue
  stale.push(path)
  if (checkOnly) continue
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}

if (stale.length === 0) {
  process.stdout.write('generated files are up to date\n')
} else if (checkOnly) {
  process.stderr.write(`out of date, run npm run generate:\n${stale.map((path) => `  ${path}\n`).join('')}`)
  process.exitCode = 1
} else {
  process.stdout.write(stale.map((path) => `wrote ${path}\n`).join(''))
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
