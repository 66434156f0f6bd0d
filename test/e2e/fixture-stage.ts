import { networkPolicies, pods } from '../../src/api/core.ts'
import { kinds, sandboxClaimKind } from '../../src/api/kinds.ts'
import type { KubeClient } from '../../src/kube/client.ts'
import type { KubeObject, Resource } from '../../src/kube/object.ts'
import type { Fixture } from '../policy/fixture.ts'

const resources: readonly Resource[] = [...kinds, pods, networkPolicies]

/** A fixture in a namespace of its own, with everything there that it takes as given. */
export interface StagedFixture extends Fixture {
  readonly namespace: string
  /** The change itself, to be given to kubectl. */
  readonly manifest: KubeObject
}

/**
 * Creates what a fixture takes as given: its companions, at an UPDATE the object as it was, at a DELETE the object that
 * goes. To be done while nobody is asked, so that it is stored as it stands.
 */
export async function stage(
  client: KubeClient,
  fixture: Fixture,
  namespace: string,
  now: number,
): Promise<StagedFixture> {
  const { documents, header, subject } = fixture
  const earlier = now - Date.parse(header.now ?? '2026-01-01T00:00:00Z')
  let rest = documents.map((document) => inNamespace(shifted(document, earlier), namespace))
  const given = subject.operation === 'DELETE' ? rest.length : rest.length - 1
  for (let i = 0; i < given; i++) {
    const [next] = rest.splice(0, 1)
    if (!next) continue
    const stored = await create(client, next)
    // Others name it by the UID that it has in the file.
    rest = withUid(rest, next.metadata.uid, stored.metadata.uid)
    if (rest.length === 0) rest.push(next)
  }
  await Promise.all(
    Array.from({ length: claimsToBe(fixture) }, async (_, i) =>
      client.create(sandboxClaimKind, {
        metadata: { namespace, name: `other-${i}` },
        spec: { warmPoolRef: { name: 'none' } },
      }),
    ),
  )
  const [manifest] = rest
  if (!manifest) throw new Error(`${fixture.path} has no subject`)
  return { ...fixture, namespace, manifest: withoutStatus(manifest) }
}

export function resourceOf({ kind }: KubeObject): Resource {
  const resource = resources.find((each) => each.kind === kind)
  if (!resource) throw new Error(`a fixture has the kind ${kind}`)
  return resource
}

/** Claims that the namespace has, where a limit makes it matter. */
function claimsToBe({ header, context }: Fixture): number {
  return context.config.claims.maxPerNamespace === undefined ? 0 : (header.facts?.claimsInNamespace ?? 0)
}

async function create(client: KubeClient, object: KubeObject): Promise<KubeObject> {
  const resource = resourceOf(object)
  const { deletionTimestamp, ...metadata } = object.metadata
  const isGoing = deletionTimestamp !== undefined
  const finalizers = isGoing ? { finalizers: ['example.com/keep'] } : {}
  let stored = await client.create(resource, { ...object, metadata: { ...metadata, ...finalizers } })
  const { namespace = '', name = '' } = stored.metadata
  if ('status' in object) {
    const patch = { status: object.status }
    stored = await client.patch(resource, { namespace, name }, patch, { type: 'merge', subresource: 'status' })
  }
  if (isGoing) await client.delete(resource, { namespace, name })
  return stored
}

/** The times of a fixture count from its own now. */
function shifted(object: KubeObject, byMs: number): KubeObject {
  const text = JSON.stringify(object).replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (time) =>
    new Date(Date.parse(time) + byMs).toISOString().replace(/\.\d+Z$/, 'Z'),
  )
  return JSON.parse(text) as KubeObject
}

function inNamespace(object: KubeObject, namespace: string): KubeObject {
  return { ...object, metadata: { ...object.metadata, namespace } }
}

function withUid(objects: readonly KubeObject[], from: string | undefined, to: string | undefined): KubeObject[] {
  const text = JSON.stringify(objects)
  return JSON.parse(from && to ? text.replaceAll(from, to) : text) as KubeObject[]
}

function withoutStatus(object: KubeObject & { status?: unknown }): KubeObject {
  const { status: _, ...rest } = object
  return rest
}
