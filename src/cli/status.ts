import { systemClock } from '../runtime/clock.ts'
import { clusterFlags, withCluster } from './cluster.ts'
import { choiceFlag, CommandError, exitCodes, parseFlags, type Command } from './command.ts'
import { install } from './manifests.ts'
import { paintFor } from './paint.ts'
import { statusReport } from './status-report.ts'
import { statusLines } from './status-screen.ts'
import { readConfiguration, readObjects } from './status-source.ts'
import { statusFormats, watchStatus } from './status-watch.ts'
import { stopSignals } from './stop-signals.ts'

const help = `Usage: sandgate status [FLAGS]

Shows pools (desired, ready, creating, stale), claims (bound to what, since when, how fast) and recent refusals.

  -n, --namespace NAME         namespace to look at (default: the context's, then default)
  -A, --all-namespaces         all of them
  -w, --watch                  keep it up to date: in place on a terminal, else printed again after each change
  -o, --output FORMAT          ${statusFormats.join(', ')} (default table); json with -w prints a line for each change
      --system-namespace NAME  where sandgate is installed, whose configuration says what is stale (default ${install.namespace})
      --kubeconfig FILE        cluster to ask (default: KUBECONFIG, then ~/.kube/config)
      --context NAME           context of the kubeconfig

Examples:
  sandgate status -A -w
  sandgate status -n agents -o json | jq '.claims[] | select(.ready | not)'
`

export const statusCommand: Command = {
  name: 'status',
  summary: 'Show pools, claims and recent refusals.',
  help,
  run: status,
}

function options(args: readonly string[]) {
  const flags = parseFlags('status', args, {
    namespace: { type: 'string', short: 'n' },
    'all-namespaces': { type: 'boolean', short: 'A', default: false },
    watch: { type: 'boolean', short: 'w', default: false },
    output: { type: 'string', short: 'o', default: 'table' },
    'system-namespace': { type: 'string', default: install.namespace },
    ...clusterFlags,
  })
  if (flags['all-namespaces'] && flags.namespace !== undefined) {
    throw new CommandError(
      `-A and -n exclude each other: one namespace, or all. See 'sandgate status --help'.`,
      exitCodes.usage,
    )
  }
  return { ...flags, format: choiceFlag('status', 'output', flags.output, statusFormats) }
}

async function status(args: readonly string[]): Promise<number> {
  const flags = options(args)
  const { format } = flags
  const out = process.stdout
  await withCluster(flags, async ({ access, client }) => {
    const namespace = flags.namespace ?? access.namespace ?? 'default'
    const scope = flags['all-namespaces'] ? {} : { namespace }
    const config = await readConfiguration(client, flags['system-namespace'])
    // Read once in any case: what keeps the reflectors waiting would be an answer here.
    const objects = await readObjects(client, scope)
    if (flags.watch) {
      await watchStatus({ client, scope, config, clock: systemClock, format, out }, stopSignals())
      return
    }
    const now = systemClock.now() + client.serverClockOffsetMs()
    const report = statusReport(objects, config)
    if (format === 'json') {
      out.write(`${JSON.stringify(report, undefined, 2)}\n`)
      return
    }
    const withNamespace = flags['all-namespaces']
    const lines = statusLines(report, { now, withNamespace, paint: paintFor(out), width: out.columns })
    out.write(`${lines.join('\n')}\n`)
  })
  return exitCodes.ok
}
