#!/usr/bin/env node
import { CommandError, exitCodes, type Command } from './cli/command.ts'

/** Each is loaded when it is asked for: what serves a cluster takes a second to load, and `version` need not wait for it. */
const commands: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['serve', async () => (await import('./cli/serve.ts')).serveCommand],
  ['check', async () => (await import('./cli/check.ts')).checkCommand],
  ['status', async () => (await import('./cli/status.ts')).statusCommand],
  ['certs', async () => (await import('./cli/certs.ts')).certsCommand],
  ['manifests', async () => (await import('./cli/manifests-command.ts')).manifestsCommand],
  ['dev', async () => (await import('./cli/dev.ts')).devCommand],
  ['version', async () => (await import('./cli/version.ts')).versionCommand],
])

async function usage(): Promise<string> {
  const all = await Promise.all([...commands.values()].map((load) => load()))
  const width = Math.max(...all.map(({ name }) => name.length))
  const lines = all.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  return `sandgate: admission webhooks and a slim controller for agent sandboxes on Kubernetes

Usage: sandgate COMMAND [FLAGS]

${lines.join('\n')}

'sandgate COMMAND --help' shows a command's flags and examples.
Exit codes: 0 done, 1 failed, 2 wrong usage.
`
}

async function main([first, ...args]: readonly string[]): Promise<number> {
  const name = first === '--version' ? 'version' : first
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(await usage())
    return name === undefined ? exitCodes.usage : exitCodes.ok
  }
  const load = commands.get(name)
  if (!load) throw new CommandError(`There is no command '${name}'. See 'sandgate --help'.`, exitCodes.usage)
  const command = await load()
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(command.help)
    return exitCodes.ok
  }
  return await command.run(args)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof CommandError)) throw error
  process.stderr.write(`sandgate: ${error.message}\n`)
  // A command that failed may have left something running, such as caches that follow the cluster.
  process.exit(error.exitCode)
}
