import { logLevels } from '../telemetry/logger.ts'
import { clusterFlags } from './cluster.ts'
import { choiceFlag, parseFlags, portFlag, secondsFlag } from './command.ts'
import { install } from './manifests.ts'

export const serveHelp = `Usage: sandgate serve [FLAGS]

Runs the admission webhooks (the gate) and the controllers (the reconcilers).

  --gate                   run the gate only; with --reconcilers, both (which is the default)
  --reconcilers            run the reconcilers only; with --gate, both
  --config FILE            configuration file (default: all defaults)
  --kubeconfig FILE        cluster to use (default: KUBECONFIG, then the pod's own service account, then ~/.kube/config)
  --context NAME           context of the kubeconfig
  --namespace NAME         namespace that sandgate is installed in (default: the cluster access's, then ${install.namespace})
  --port PORT              port of the webhooks (default 8443)
  --host ADDRESS           address to listen on (default: all)
  --http-port PORT         port of /healthz, /readyz and /metrics (default 8080)
  --cert-dir DIR           serve tls.crt and tls.key from DIR instead of managing certificates
  --cert-host HOST         further name or address that the managed certificate is for; may be repeated
  --drain-seconds N        how long to keep answering after SIGTERM (default 10)
  --log-level LEVEL        ${logLevels.join(', ')} (default info)

Examples:
  sandgate serve --config=/etc/sandgate/config.yaml       # in a pod
  sandgate serve --reconcilers --kubeconfig ~/.kube/config  # controllers only, from a laptop

SIGTERM ends it: not ready at once, then the drain, then exit code 0. A second signal ends it at once.
`

export type ServeOptions = ReturnType<typeof serveOptions>

/** The flags of `sandgate serve`, checked and with their defaults. */
export function serveOptions(args: readonly string[]) {
  const flags = parseFlags('serve', args, {
    gate: { type: 'boolean' },
    reconcilers: { type: 'boolean' },
    config: { type: 'string' },
    ...clusterFlags,
    namespace: { type: 'string' },
    port: { type: 'string', default: '8443' },
    host: { type: 'string' },
    'http-port': { type: 'string', default: '8080' },
    'cert-dir': { type: 'string' },
    'cert-host': { type: 'string', multiple: true, default: [] },
    'drain-seconds': { type: 'string', default: '10' },
    'log-level': { type: 'string', default: 'info' },
  })
  const isBoth = flags.gate === flags.reconcilers
  return {
    ...flags,
    gate: isBoth || flags.gate === true,
    reconcilers: isBoth || flags.reconcilers === true,
    port: portFlag('serve', 'port', flags.port),
    httpPort: portFlag('serve', 'http-port', flags['http-port']),
    drainMs: secondsFlag('serve', 'drain-seconds', flags['drain-seconds']) * 1000,
    certDirectory: flags['cert-dir'],
    certHosts: flags['cert-host'],
    logLevel: choiceFlag('serve', 'log-level', flags['log-level'], logLevels),
  }
}
