#!/usr/bin/env node
import { CommandError, exitCodes, type Command } from './cli/command.ts'
import { certsCommand } from './cli/certs.ts'
import { checkCommand } from './cli/check.ts'
import { devCommand } from './cli/dev.ts'
import { manifestsCommand } from './cli/manifests-command.ts'
import { serveCommand } from './cli/serve.ts'
import { statusCommand } from './cli/status.ts'
import { versionCommand } from './cli/version.ts'

const commands: readonly Command[] = [
  serveCommand,
  checkCommand,
  statusCommand,
  certsCommand,
  manifestsCommand,
  devCommand,
  versionCommand,
]

function usage(): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  return `sandgate: admission webhooks and a slim controller for agent sandboxes on Kubernetes

Usage: sandgate COMMAND [FLAGS]

${lines.join('\n')}

'sandgate COMMAND --help' shows a command's flags and examples.
Exit codes: 0 done, 1 failed, 2 wrong usage.
`
}

async function main([name, ...args]: readonly string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(usage())
    return name === undefined ? exitCodes.usage : exitCodes.ok
  }
  const command = commands.find((each) => each.name === name)
  if (!command) throw new CommandError(`There is no command '${name}'. See 'sandgate --help'.`, exitCodes.usage)
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
  process.exitCode = error.exitCode
}
