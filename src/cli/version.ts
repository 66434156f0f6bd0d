import packageJson from '../../package.json' with { type: 'json' }
import { exitCodes, parseFlags, type Command } from './command.ts'

export const version: string = packageJson.version

export const versionCommand: Command = {
  name: 'version',
  summary: 'Print the version.',
  help: `Usage: sandgate version

Prints the version of this program.
`,
  async run(args) {
    parseFlags('version', args, {})
    process.stdout.write(`sandgate ${version} (node ${process.version})\n`)
    return exitCodes.ok
  },
}
