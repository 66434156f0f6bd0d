import { spawn } from 'node:child_process'
import { glob, readFile, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import process from 'node:process'
import { createTapReport } from './tap-report.ts'

/**
 * `npm test [-- FILE_OR_FOLDER…]`: prepares what the tests need, runs them with tap and shows each file as it ends.
 * The last line is always `N passed, N failed, N skipped`; the exit code is 0 only when something ran and nothing failed.
 */
const root = fileURLToPath(new URL('../', import.meta.url))
const tap = fileURLToPath(new URL('../node_modules/.bin/tap', import.meta.url))

process.chdir(root)
const print = (line: string) => process.stdout.write(`${line}\n`)
const report = createTapReport(print)
let ranClean = false
try {
  const files = await testFiles(process.argv.slice(2))
  if (files.length === 0) print('no test files match')
  else {
    await buildRunner()
    if (await needControlPlane(files)) await buildControlPlane()
    ranClean = (await runTap(['run', '--reporter=tap', ...files], (chunk) => report.write(chunk))) === 0
  }
} catch (error) {
  print(error instanceof Error ? error.message : String(error))
}
const { counts, ok } = report.end()
process.exitCode = ranClean && ok && counts.passed > 0 ? 0 : 1
print(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)

/** The test files that the arguments name, folders included; without arguments all of them. */
async function testFiles(names: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  for (const name of names.length > 0 ? names : ['test']) {
    if (!(await stat(name)).isDirectory()) found.add(name)
    else for await (const file of glob(`${name.replace(/\/$/, '')}/**/*.test.ts`)) found.add(file)
  }
  return [...found].toSorted()
}

/**
 * tap's Test class is generated from its plugins. A fresh install holds one with the TypeScript plugin, which .taprc
 * leaves out because Node strips the types itself; that one has to be generated once more.
 */
async function buildRunner(): Promise<void> {
  const generated = fileURLToPath(import.meta.resolve('@tapjs/test/test-built'))
  if (!(await readFile(generated, 'utf8')).includes('@tapjs/typescript')) return
  print('preparing the test runner')
  const code = await runTap(['build'], () => undefined)
  if (code !== 0) throw new Error(`tap build failed with exit code ${code}`)
}

/** Whether any of the files starts a local control plane. */
async function needControlPlane(files: readonly string[]): Promise<boolean> {
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  return texts.some((text) => /from '.*(devcluster\/|\/e2e\/)/.test(text)) || files.some((file) => /\be2e\//.test(file))
}

/** Finds or builds the control plane before any test's time starts to run: a first build takes minutes. */
async function buildControlPlane(): Promise<void> {
  const { findControlPlane } = await import('../devcluster/binaries.ts')
  await findControlPlane(print)
}

/** Runs tap to its end and answers with its exit code. A signal to us is passed on, so that no test outlives this. */
async function runTap(args: readonly string[], onOutput: (chunk: Uint8Array) => void): Promise<number> {
  const child = spawn(process.execPath, [tap, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of signals) process.on(signal, pass)
  child.stdout.on('data', onOutput)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      for (const name of signals) process.off(name, pass)
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0))
    })
  })
}
