import type { X509Certificate } from 'node:crypto'
import type { KubeClient } from '../src/kube/client.ts'
import { isKubeError } from '../src/kube/errors.ts'
import type { KubeObject, Resource } from '../src/kube/object.ts'
import { certificatesIn } from './pem.ts'

export type WebhookConfiguration = KubeObject & {
  webhooks?: { name: string; clientConfig: { caBundle?: string } }[]
}

const admissionRegistration = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const

export const mutatingWebhookConfigurations: Resource<WebhookConfiguration> = {
  ...admissionRegistration,
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
}
export const validatingWebhookConfigurations: Resource<WebhookConfiguration> = {
  ...admissionRegistration,
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
}

/** One webhook configuration whose caBundles are ours to keep. */
export interface ConfigurationName {
  readonly resource: Resource<WebhookConfiguration>
  readonly name: string
}

/** What one webhook tells the API server to trust. */
export interface CaBundle {
  readonly configuration: string
  readonly webhook: string
  readonly certificates: readonly X509Certificate[]
}

/** The caBundles of all webhooks. Configurations that do not exist are passed over. */
export interface CaBundles {
  read(): Promise<CaBundle[]>
  /** Adds the certificates of a PEM text to every bundle that lacks them; never takes one away. */
  add(pem: string): Promise<void>
  /** Takes the certificates of a PEM text out of every bundle. Only for authorities that nobody uses any more. */
  remove(pem: string): Promise<void>
}

/** Attempts at one patch when others keep writing the same object. */
const attempts = 5

export function createCaBundles(client: KubeClient, configurations: readonly ConfigurationName[]): CaBundles {
  async function get({ resource, name }: ConfigurationName): Promise<WebhookConfiguration | undefined> {
    try {
      return await client.get(resource, { name })
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return undefined
      throw error
    }
  }

  /** Replaces bundles by webhook, against the version that was read, and touches nothing else in the object. */
  async function change(configuration: ConfigurationName, changed: (bundle: string) => string): Promise<void> {
    const { resource, name } = configuration
    for (let attempt = 1; ; attempt++) {
      const found = await get(configuration)
      const edits = found ? editsOf(found, changed) : []
      if (!found || edits.length === 0) return
      const lock = { op: 'replace', path: '/metadata/resourceVersion', value: found.metadata.resourceVersion }
      try {
        await client.patch(resource, { name }, [lock, ...edits], { type: 'json' })
        return
      } catch (error) {
        if (isKubeError(error, 'NotFound')) return
        if (!isKubeError(error, 'Conflict') || attempt === attempts) throw error
      }
    }
  }

  async function changeAll(changed: (bundle: string) => string): Promise<void> {
    await Promise.all(configurations.map((configuration) => change(configuration, changed)))
  }

  return {
    async read() {
      const found = await Promise.all(configurations.map(get))
      return found.flatMap((configuration) =>
        (configuration?.webhooks ?? []).map(({ name, clientConfig }) => ({
          configuration: `${configuration?.kind ?? ''} ${configuration?.metadata.name ?? ''}`.trim(),
          webhook: name,
          certificates: certificatesIn(decoded(clientConfig.caBundle)),
        })),
      )
    },
    add: (pem) => changeAll((bundle) => withCertificates(bundle, pem)),
    remove: (pem) => changeAll((bundle) => withoutCertificates(bundle, pem)),
  }
}

function editsOf({ webhooks = [] }: WebhookConfiguration, changed: (bundle: string) => string): object[] {
  return webhooks.flatMap(({ clientConfig }, position) => {
    const before = decoded(clientConfig.caBundle)
    const after = changed(before)
    if (after === before) return []
    const path = `/webhooks/${position}/clientConfig/caBundle`
    return [{ op: 'add', path, value: Buffer.from(after).toString('base64') }]
  })
}

/** What stands in the bundle stays as it is written, whoever put it there. */
function withCertificates(bundle: string, pem: string): string {
  const present = new Set(certificatesIn(bundle).map(({ fingerprint256 }) => fingerprint256))
  const missing = certificatesIn(pem).filter(({ fingerprint256 }) => !present.has(fingerprint256))
  if (missing.length === 0) return bundle
  const separator = bundle === '' || bundle.endsWith('\n') ? '' : '\n'
  return bundle + separator + missing.join('')
}

function withoutCertificates(bundle: string, pem: string): string {
  const unwanted = new Set(certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256))
  const before = certificatesIn(bundle)
  const after = before.filter(({ fingerprint256 }) => !unwanted.has(fingerprint256))
  // An empty bundle would mean the system's authorities, none of which signs for us.
  return after.length === before.length || after.length === 0 ? bundle : after.join('')
}

const decoded = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString('utf8')
