import {
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
  type WebhookConfiguration,
} from '../../certs/ca-bundle.ts'
import { certificatesIn } from '../../certs/pem.ts'
import { createAuthorityStore, type StoredState } from '../../certs/store.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { Resource } from '../kube/object.ts'
import { systemClock } from '../runtime/clock.ts'
import { certificateReport, type Bundle, type CertificateReport, type CertificateView } from './certs-report.ts'
import { endpointName, servedAt, type Endpoint } from './certs-served.ts'
import { clusterFlags, withCluster } from './cluster.ts'
import { choiceFlag, exitCodes, parseFlags, type Command } from './command.ts'
import { install } from './manifests.ts'
import { paintFor, plain, type Paint } from './paint.ts'
import { age } from './status-screen.ts'
import { tableLines } from './table.ts'

const formats = ['table', 'json'] as const

const help = `Usage: sandgate certs [FLAGS]

Shows the certificates of the gate: what is served, what is in the Secret, what each caBundle trusts, until when, and
whether they agree.

  --namespace NAME      namespace that sandgate is installed in (default ${install.namespace})
  -o, --output FORMAT   ${formats.join(', ')} (default table)
  --kubeconfig FILE     cluster to ask (default: KUBECONFIG, then ~/.kube/config)
  --context NAME        context of the kubeconfig

What is served can be seen only from where the Service, or the URL, of the webhooks can be reached; the rest is compared
all the same.

Exit codes: 0 they agree, 1 they do not, or the cluster does not answer, 2 wrong usage.

Examples:
  sandgate certs
  kubectl -n ${install.namespace} exec deploy/${install.deployment} -- /usr/local/bin/node /app/src/main.js certs
`

export const certsCommand: Command = {
  name: 'certs',
  summary: "Show the gate's certificates, and whether they agree.",
  help,
  async run(args) {
    const flags = parseFlags('certs', args, {
      namespace: { type: 'string', default: install.namespace },
      output: { type: 'string', short: 'o', default: 'table' },
      ...clusterFlags,
    })
    const format = choiceFlag('certs', 'output', flags.output, formats)
    const report = await withCluster(flags, async ({ client }) => {
      const view = await look(client, flags.namespace)
      return certificateReport(view)
    })
    const now = systemClock.now()
    const written =
      format === 'json' ? JSON.stringify(report, undefined, 2) : textOf(report, paintFor(process.stdout), now)
    process.stdout.write(`${written}\n`)
    return report.agree ? exitCodes.ok : exitCodes.failed
  },
}

async function look(client: KubeClient, namespace: string): Promise<CertificateView> {
  const bundles = [
    ...(await bundlesOf(client, mutatingWebhookConfigurations)),
    ...(await bundlesOf(client, validatingWebhookConfigurations)),
  ]
  const endpoints = new Map(bundles.map(({ endpoint }) => [endpointName(endpoint), endpoint]))
  const served = [...endpoints.values()].map(async (endpoint) => ({
    endpoint,
    served: await servedAt(endpoint, systemClock),
  }))
  const now = systemClock.now() + client.serverClockOffsetMs()
  return { now, bundles, served: await Promise.all(served), stored: await storedIn(client, namespace, now) }
}

/** `clientConfig`, with what it says of whom to call. */
interface ClientConfig {
  readonly caBundle?: string
  readonly url?: string
  readonly service?: { readonly name: string; readonly namespace: string; readonly port?: number }
}

async function bundlesOf(client: KubeClient, resource: Resource<WebhookConfiguration>): Promise<Bundle[]> {
  try {
    const { webhooks = [] } = await client.get(resource, { name: install.registration })
    return webhooks.map(({ name, clientConfig }) => ({
      configuration: `${resource.kind} ${install.registration}`,
      webhook: name,
      endpoint: endpointOf(clientConfig),
      certificates: certificatesIn(Buffer.from(clientConfig.caBundle ?? '', 'base64').toString('utf8')),
    }))
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return []
    throw error
  }
}

function endpointOf({ url, service }: ClientConfig): Endpoint {
  if (service) return { host: `${service.name}.${service.namespace}.svc`, port: service.port ?? 443 }
  const { hostname, port } = new URL(url ?? 'https://unknown.invalid')
  return { host: hostname.replaceAll(/^\[|\]$/g, ''), port: Number(port || 443) }
}

async function storedIn(client: KubeClient, namespace: string, now: number): Promise<StoredState | undefined> {
  try {
    return await createAuthorityStore(client, namespace, install.authoritySecret).read(now)
  } catch (error) {
    if (isKubeError(error, 'Forbidden')) return undefined
    throw error
  }
}

function textOf({ agree, problems, notes, certificates }: CertificateReport, paint: Paint, now: number): string {
  const rows = certificates.map(({ place, where, subject, until, fingerprint }) =>
    [place, where, plain(subject), until, age(Date.parse(until) - now), fingerprint].map((text) => ({ text })),
  )
  const heads = ['WHAT', 'WHERE', 'SUBJECT', 'UNTIL', 'LEFT', 'FINGERPRINT'].map((text) => ({ text }))
  const [head = '', ...body] = tableLines([heads, ...rows], process.stdout.columns)
  return [
    paint.bold(head),
    ...body,
    '',
    ...notes,
    ...(agree ? [paint.green('They agree.')] : problems.map((problem) => paint.red(problem))),
  ].join('\n')
}
