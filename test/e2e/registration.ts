import {
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
  type WebhookConfiguration,
} from '../../certs/ca-bundle.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { sandboxClaimKind, type SandboxClaim } from '../../src/api/kinds.ts'
import { annotations } from '../../src/api/vocabulary.ts'
import { install } from '../../src/cli/manifests.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import { isKubeError } from '../../src/kube/errors.ts'

const configurations = [mutatingWebhookConfigurations, validatingWebhookConfigurations]
const patience = { withinMs: 30_000 }

/** Does `work` while the API server asks no webhook, then registers them again as they were and waits for both. */
export async function whileUnregistered<T>(client: KubeClient, work: () => Promise<T>): Promise<T> {
  const ref = { name: install.registration }
  const found = await Promise.all(configurations.map((resource) => client.get(resource, ref)))
  await Promise.all(configurations.map((resource) => client.delete(resource, ref)))
  await waitUntil('the end of the registration', async () => (await probe(client)) === 'nobody asked', patience)
  try {
    return await work()
  } finally {
    await Promise.all(
      found.map(async (configuration, i) => {
        const { webhooks } = configuration
        const again: WebhookConfiguration = { metadata: ref, ...(webhooks && { webhooks }) }
        await client.create(configurations[i] ?? mutatingWebhookConfigurations, again)
      }),
    )
    await waitUntil('the registration', async () => (await probe(client)) === 'both asked', patience)
  }
}

/** Tries a claim that validation refuses, and one that mutation stamps. The API server learns of either on its own. */
async function probe(client: KubeClient): Promise<'nobody asked' | 'both asked' | 'one asked'> {
  const [isValidated, isMutated] = await Promise.all([
    attempt(client, { labels: { app: 'sandbox-router' } }).then((claim) => claim === undefined),
    attempt(client, {}).then((claim) => claim?.metadata.annotations?.[annotations.requestedBy] !== undefined),
  ])
  if (isValidated && isMutated) return 'both asked'
  return isValidated || isMutated ? 'one asked' : 'nobody asked'
}

async function attempt(client: KubeClient, additionalPodMetadata: object): Promise<SandboxClaim | undefined> {
  const metadata = { namespace: 'default', generateName: 'probe-' }
  try {
    const spec = { warmPoolRef: { name: 'none' }, additionalPodMetadata }
    return await client.create(sandboxClaimKind, { metadata, spec }, { dryRun: true })
  } catch (error) {
    if (isKubeError(error, 'Forbidden')) return undefined
    throw error
  }
}
