import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { canonicalJson } from '../api/hash.ts'
import type { Sandbox } from '../api/kinds.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import { blueprintOf } from './blueprint.ts'

/**
 * Proof of origin: who made a Sandbox, and for which claim it was bound. Labels and owner references can be written by
 * anyone who may create Sandboxes; a keyed signature cannot.
 */

/** A signing key. `id` is written beside every signature, so it holds no `.`. */
export interface OriginKey {
  readonly id: string
  readonly secret: Uint8Array
}

/** Signatures are made with `current` and accepted from both, so that a rotation invalidates no stock. */
export interface OriginKeys {
  readonly current: OriginKey
  readonly previous?: OriginKey
}

/** `unknown-key`: the signature names a key that is not (or no longer) ours, so it can be neither trusted nor called forged. */
export type OriginVerdict = 'valid' | 'unknown-key' | 'invalid'

export interface OriginClaims {
  readonly namespace: string
  /** UID of the pool or claim that the Sandbox is made for. */
  readonly ownerUid: string
  readonly name: string
  /** See {@link signedBlueprint}. */
  readonly blueprint: string
  /** Of a pool's stock: see {@link signedPodMetadata}. */
  readonly podMetadata?: string
}

/**
 * The part of a Sandbox that its proof covers for good, as canonical text. Pod labels and annotations are left out,
 * since adoption rewrites them; times and operating mode, since their owner may change them.
 */
export function signedBlueprint(sandbox: Pick<Sandbox, 'spec'>): string {
  return canonicalJson(blueprintOf(sandbox))
}

/** What the proof of a pool's stock covers besides, until adoption: annotations of a Pod can steer its runtime. */
export function signedPodMetadata(sandbox: Pick<Sandbox, 'spec'>): string {
  return canonicalJson(sandbox.spec.podTemplate.metadata ?? {})
}

/** Value of the annotation `sandgate.dev/origin`: a key id, a signature, and for a pool's stock a second one. */
export function signOrigin(key: OriginKey, claims: OriginClaims): string {
  const { podMetadata } = claims
  const messages = [originMessage(claims)]
  if (podMetadata !== undefined) messages.push(podMetadataMessage({ ...claims, podMetadata }))
  return sign(key, ...messages)
}

/** The Sandbox, not yet created, with its proof of origin for the owner with this UID. */
export function withOrigin(key: OriginKey, sandbox: Sandbox, ownerUid: string): Sandbox {
  const { namespace = '', name = '' } = sandbox.metadata
  const origin = signOrigin(key, { namespace, ownerUid, name, blueprint: signedBlueprint(sandbox) })
  return {
    ...sandbox,
    metadata: {
      ...sandbox.metadata,
      annotations: { ...sandbox.metadata.annotations, [annotations.origin]: origin },
    },
  }
}

/**
 * Judges the origin annotation of a stored Sandbox against what is stored, for the owner with this UID. While the
 * Sandbox bears a pool's label, and only then can it be handed out, its Pod metadata counts as well.
 */
export function verifyOrigin(keys: OriginKeys, sandbox: Sandbox, ownerUid: string): OriginVerdict {
  const { namespace = '', name = '', labels: own, annotations: notes } = sandbox.metadata
  return verify(keys, notes?.[annotations.origin], () => {
    const claims = { namespace, ownerUid, name, blueprint: signedBlueprint(sandbox) }
    const isStock = own?.[labels.warmPool] !== undefined
    const extra = isStock ? [podMetadataMessage({ ...claims, podMetadata: signedPodMetadata(sandbox) })] : []
    return [originMessage(claims), ...extra]
  })
}

/** Value of the annotation `sandgate.dev/bound`. */
export function signBound(key: OriginKey, binding: { sandboxUid: string; claimUid: string }): string {
  return sign(key, boundMessage(binding.sandboxUid, binding.claimUid))
}

/** Judges whether the controllers bound this Sandbox to the claim with this UID. */
export function verifyBound(keys: OriginKeys, sandbox: Sandbox, claimUid: string): OriginVerdict {
  return verify(keys, sandbox.metadata.annotations?.[annotations.bound], () => [
    boundMessage(sandbox.metadata.uid ?? '', claimUid),
  ])
}

/**
 * `verifyOrigin` with a memory: stores hand out the same object until it changes, so a Sandbox is hashed once per
 * version and not once per pass. The memory goes with the objects and with a change of keys.
 */
export function originVerifier(keys: () => OriginKeys): (sandbox: Sandbox, ownerUid: string) => OriginVerdict {
  const judged = new WeakMap<Sandbox, { keys: OriginKeys; ownerUid: string; verdict: OriginVerdict }>()
  return (sandbox, ownerUid) => {
    const inForce = keys()
    const known = judged.get(sandbox)
    if (known?.keys === inForce && known.ownerUid === ownerUid) return known.verdict
    const verdict = verifyOrigin(inForce, sandbox, ownerUid)
    judged.set(sandbox, { keys: inForce, ownerUid, verdict })
    return verdict
  }
}

// The first word keeps a signature of one sort from passing as the other; JSON keeps neighbouring parts apart.
function originMessage({ namespace, ownerUid, name, blueprint }: OriginClaims): string {
  return JSON.stringify(['origin', namespace, ownerUid, name, digestOf(blueprint)])
}

function podMetadataMessage({ namespace, ownerUid, name, podMetadata }: Required<OriginClaims>): string {
  return JSON.stringify(['pod-metadata', namespace, ownerUid, name, digestOf(podMetadata)])
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function boundMessage(sandboxUid: string, claimUid: string): string {
  return JSON.stringify(['bound', sandboxUid, claimUid])
}

function sign(key: OriginKey, ...messages: readonly string[]): string {
  return [key.id, ...messages.map((message) => mac(key, message).toString('base64url'))].join('.')
}

/** Every message must be signed in its place. Further signatures are of what does not count at present. */
function verify(keys: OriginKeys, proof: string | undefined, messages: () => readonly string[]): OriginVerdict {
  const [id, ...signatures] = proof?.split('.') ?? []
  if (!id || signatures.length === 0) return 'invalid'
  const key = [keys.current, keys.previous].find((candidate) => candidate?.id === id)
  if (!key) return 'unknown-key'
  const areValid = messages().every((message, i) => {
    const given = Buffer.from(signatures[i] ?? '', 'base64url')
    const expected = mac(key, message)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
  return areValid ? 'valid' : 'invalid'
}

function mac(key: OriginKey, message: string): Buffer {
  return createHmac('sha256', key.secret).update(message).digest()
}
