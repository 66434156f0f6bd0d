import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { createAuthority, signServing } from '../../certs/authority.ts'
import { validatingWebhookConfigurations } from '../../certs/ca-bundle.ts'
import { type SandboxClaim, sandboxClaimKind } from '../../src/api/kinds.ts'
import type { KubeClient } from '../../src/kube/client.ts'

interface Review {
  request: { uid: string; object: SandboxClaim }
}

/** Makes the API server answer chosen writes of a claim's status with an internal error. */
export interface Saboteur {
  /** From now on; `fails` is asked about each status as it would be stored. */
  sabotage(fails: (claim: SandboxClaim) => boolean): void
}

const name = 'status-saboteur.test'

/**
 * A webhook of the test's own, on the status of claims. The API server gets to know it in its own time: `isAsked` has to
 * resolve once it does.
 */
export async function startSaboteur(
  t: { teardown(stop: () => Promise<void>): void },
  client: KubeClient,
  isAsked: (saboteur: Saboteur) => Promise<void>,
): Promise<Saboteur> {
  const authority = await createAuthority(Date.now())
  const { key, cert } = await signServing(authority, ['127.0.0.1'], Date.now())
  let fails: (claim: SandboxClaim) => boolean = () => false
  const server = createServer({ key, cert }, (request, reply) => {
    void json(request).then((body) => {
      const { uid, object } = (body as Review).request
      const response = fails(object)
        ? { uid, allowed: false, status: { code: 500, message: 'as the test wants it' } }
        : { uid, allowed: true }
      reply.setHeader('content-type', 'application/json')
      reply.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }))
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await server[Symbol.asyncDispose]()
  })

  const { group, version, plural } = sandboxClaimKind
  const clientConfig = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    caBundle: Buffer.from(authority.cert).toString('base64'),
  }
  const rules = [
    { apiGroups: [group], apiVersions: [version], operations: ['UPDATE'], resources: [`${plural}/status`] },
  ]
  const behaviour = { admissionReviewVersions: ['v1'], sideEffects: 'None', failurePolicy: 'Fail' }
  const webhook = { name: `claims.${name}`, clientConfig, rules, ...behaviour }
  await client.create(validatingWebhookConfigurations, { metadata: { name }, webhooks: [webhook] })
  const saboteur: Saboteur = { sabotage: (chosen) => void (fails = chosen) }
  await isAsked(saboteur)
  return saboteur
}
