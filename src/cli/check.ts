import { ConfigError, loadConfig } from '../config/load.ts'
import { defaultConfig, type Config } from '../config/schema.ts'
import { systemClock } from '../runtime/clock.ts'
import { readManifests, type Manifest } from './check-manifests.ts'
import { checkFormats, reportOf, skippedNote } from './check-report.ts'
import { readCluster } from './check-surroundings.ts'
import { isRefusal, judge, type Judged } from './check-verdicts.ts'
import { clusterFlags, withCluster } from './cluster.ts'
import { choiceFlag, CommandError, exitCodes, parseArguments, type Command } from './command.ts'
import { paintFor } from './paint.ts'

const help = `Usage: sandgate check -f DIR_OR_FILE… [FLAGS]

Says what admission would say to manifests, without a cluster: the same rules, with the line of each field.
Templates, pools and claims are judged together, whatever their order.

  -f, --filename PATH      a file, or a folder with all below it; may be repeated; - is standard input
  -n, --namespace NAME     for manifests that do not name theirs (default: the context's with --from-cluster, else default)
      --config FILE        configuration file of the cluster's sandgate (default: all defaults)
      --user NAME          who would apply them (default: someone without special rights)
  -o, --output FORMAT      ${checkFormats.join(', ')} (default text)
      --from-cluster       also know what the cluster has: what exists already is judged as an update, and Pods are tried
      --kubeconfig FILE    cluster to ask (default: KUBECONFIG, then ~/.kube/config)
      --context NAME       context of the kubeconfig

Exit codes: 0 nothing is refused (warnings may be there), 1 something is, 2 input that cannot be read, or wrong usage.

Examples:
  sandgate check -f manifests/
  kustomize build . | sandgate check -f - --config sandgate.yaml
  sandgate check -f manifests/ -o github                    # annotations on a pull request
  sandgate check -f claim.yaml --from-cluster --user alice
`

export const checkCommand: Command = {
  name: 'check',
  summary: 'Say what admission would say to manifests.',
  help,
  run: check,
}

/** A user name that no configuration trusts. */
const nobodySpecial = 'sandgate-check'

function options(args: readonly string[]) {
  const { values: flags, positionals } = parseArguments('check', args, {
    filename: { type: 'string', short: 'f', multiple: true, default: [] },
    namespace: { type: 'string', short: 'n' },
    config: { type: 'string' },
    user: { type: 'string', default: nobodySpecial },
    output: { type: 'string', short: 'o', default: 'text' },
    'from-cluster': { type: 'boolean', default: false },
    ...clusterFlags,
  })
  // A shell turns `-f *.yaml` into one flag and many arguments.
  const paths = flags.filename.length > 0 ? [...flags.filename, ...positionals] : []
  if (paths.length === 0) throw wrong('Name the manifests with -f')
  const needsCluster = flags.kubeconfig !== undefined || flags.context !== undefined
  if (needsCluster && !flags['from-cluster']) throw wrong('--kubeconfig and --context go with --from-cluster')
  return { ...flags, paths, format: choiceFlag('check', 'output', flags.output, checkFormats) }
}

async function check(args: readonly string[]): Promise<number> {
  const flags = options(args)
  const config = await configFrom(flags.config)
  const { manifests, problems } = await readManifests(flags.paths, process.stdin)
  if (problems.length > 0) throw new CommandError(problems.join('\n'), exitCodes.usage)
  const judged = flags['from-cluster']
    ? await judgeInCluster(manifests, config, flags)
    : await judge(manifests, {
        config,
        username: flags.user,
        namespace: flags.namespace ?? 'default',
        clock: systemClock,
      })
  const skipped = skippedNote(judged)
  if (skipped !== undefined) process.stderr.write(`sandgate: ${skipped}\n`)
  process.stdout.write(reportOf(judged, flags.format, paintFor(process.stdout)))
  return judged.verdicts.some(({ findings }) => findings.some(isRefusal)) ? exitCodes.failed : exitCodes.ok
}

async function judgeInCluster(
  manifests: readonly Manifest[],
  config: Config,
  flags: ReturnType<typeof options>,
): Promise<Judged> {
  const work = async ({ access, client }: Parameters<Parameters<typeof withCluster<Judged>>[1]>[0]) => {
    const namespace = flags.namespace ?? access.namespace ?? 'default'
    const named = manifests.map(({ object }) => object.metadata.namespace ?? namespace)
    const { objects, unreadable } = await readCluster(client, [...new Set(named)])
    if (unreadable.length > 0) {
      process.stderr.write(`sandgate: you may not read ${unreadable.join(', ')}: rules say nothing about these\n`)
    }
    return await judge(manifests, {
      config,
      username: flags.user,
      namespace,
      clock: systemClock,
      cluster: { client, objects },
    })
  }
  // A refusal alone ends with 1: a pipeline must be able to tell it from a cluster that does not answer.
  return await withCluster(flags, work, { failureCode: exitCodes.usage })
}

async function configFrom(path: string | undefined): Promise<Config> {
  if (path === undefined) return defaultConfig
  try {
    return await loadConfig(path)
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message, exitCodes.usage, error)
    throw error
  }
}

function wrong(problem: string): CommandError {
  return new CommandError(`${problem}. See 'sandgate check --help'.`, exitCodes.usage)
}
