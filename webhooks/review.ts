import type { ErrorCause } from '../src/kube/errors.ts'
import type { KubeObject, ObjectMeta } from '../src/kube/object.ts'
import type { Operation } from '../src/policy/rule.ts'
import type { Target } from './table.ts'
import { plainText, warningTexts } from './text.ts'

/** The part of an admission.k8s.io/v1 AdmissionRequest that the gate reads, checked for shape. */
export interface AdmissionRequest {
  readonly uid: string
  /** What is asked about, as the table of webhooks names it. */
  readonly target: Target
  readonly operation: Operation
  /** Empty at CREATE with generateName. */
  readonly name: string
  readonly namespace: string
  readonly user: { readonly username: string; readonly groups: readonly string[] }
  /** The new object; at DELETE the one that goes. */
  readonly object: KubeObject
  /** Present on UPDATE. */
  readonly oldObject: KubeObject | undefined
  readonly dryRun: boolean
}

export type ParsedReview =
  | { readonly kind: 'request'; readonly request: AdmissionRequest }
  /** `uid` is empty when the review is so broken that it has none. */
  | { readonly kind: 'malformed'; readonly uid: string; readonly because: string }

/** The answer to a request, before it is put into its envelope. */
export type Verdict =
  | {
      readonly kind: 'allowed'
      readonly warnings?: readonly string[]
      readonly audit?: Readonly<Record<string, string>>
      /** JSON Patch; empty and absent mean the same. */
      readonly patch?: readonly object[]
    }
  | {
      readonly kind: 'denied'
      /** HTTP status for the client of the API server. */
      readonly code: 400 | 403 | 422 | 500
      readonly message: string
      readonly causes?: readonly ErrorCause[]
      readonly warnings?: readonly string[]
      readonly audit?: Readonly<Record<string, string>>
      /** What the refusal speaks of, for the details of the status. */
      readonly of?: { readonly name: string; readonly group: string; readonly kind: string }
    }

/** The machine-readable reasons that Kubernetes has for these codes. */
const reasons = { 400: 'BadRequest', 403: 'Forbidden', 422: 'Invalid', 500: 'InternalError' } as const

const operations: readonly Operation[] = ['CREATE', 'UPDATE', 'DELETE']

/** Reads the body of a review for one of `targets`. Never throws: what cannot be read is a value too. */
export function parseReview(body: unknown, targets: readonly Target[]): ParsedReview {
  const request = isRecord(body) ? body['request'] : undefined
  if (!isRecord(request))
    return { kind: 'malformed', uid: '', because: 'the body is not an AdmissionReview with a request' }
  const uid = textOf(request['uid'])
  const malformed = (because: string): ParsedReview => ({ kind: 'malformed', uid, because })
  if (uid === '') return malformed('request.uid is missing')

  const target = targets.find((each) => isNamedBy(each, request['resource'], request['subResource']))
  if (!target) return malformed('request.resource is not one that this webhook judges')
  const operation = operations.find((known) => known === request['operation'])
  if (!operation) return malformed('request.operation is none of CREATE, UPDATE, DELETE')

  const object = objectOf(operation === 'DELETE' ? request['oldObject'] : request['object'])
  const oldObject = operation === 'UPDATE' ? objectOf(request['oldObject']) : undefined
  if (!object) return malformed('request.object is not an object with metadata')
  if (operation === 'UPDATE' && !oldObject) return malformed('request.oldObject is not an object with metadata')
  const user = isRecord(request['userInfo']) ? request['userInfo'] : {}
  return {
    kind: 'request',
    request: {
      uid,
      target,
      operation,
      name: textOf(request['name']) || (object.metadata.name ?? ''),
      namespace: textOf(request['namespace']),
      user: { username: textOf(user['username']), groups: textsOf(user['groups']) },
      object: operation === 'CREATE' ? withoutDeletion(object) : object,
      oldObject,
      dryRun: request['dryRun'] === true,
    },
  }
}

/** The AdmissionReview that carries `verdict` back, as JSON text. */
export function formatReview(uid: string, verdict: Verdict): string {
  const warnings = warningTexts(verdict.warnings ?? [])
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: verdict.kind === 'allowed',
      ...(verdict.kind === 'allowed' ? patchOf(verdict.patch) : { status: statusOf(verdict) }),
      ...(warnings.length > 0 && { warnings }),
      ...(verdict.audit && Object.keys(verdict.audit).length > 0 && { auditAnnotations: verdict.audit }),
    },
  })
}

function patchOf(patch: readonly object[] | undefined) {
  if (!patch || patch.length === 0) return {}
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
}

function statusOf(verdict: Verdict & { kind: 'denied' }) {
  const causes = (verdict.causes ?? []).map(({ field, message, reason }) => ({
    ...(field !== undefined && { field: plainText(field) }),
    ...(message !== undefined && { message: plainText(message) }),
    ...(reason !== undefined && { reason }),
  }))
  return {
    status: 'Failure',
    code: verdict.code,
    reason: reasons[verdict.code],
    message: verdict.message,
    details: { ...verdict.of, ...(causes.length > 0 && { causes }) },
  }
}

/** With matchPolicy Equivalent every version arrives as the one that was registered, so the version tells nothing. */
function isNamedBy({ resource, subresource }: Target, named: unknown, namedSubresource: unknown): boolean {
  if (!isRecord(named)) return false
  return (
    textOf(named['group']) === resource.group &&
    named['resource'] === resource.plural &&
    textOf(namedSubresource) === (subresource ?? '')
  )
}

/**
 * At CREATE the field means nothing yet (servers before 1.22 still show what the client sent), and whoever sets it must
 * not be taken for an object on its way out, which is neither stamped nor judged.
 */
function withoutDeletion(object: KubeObject): KubeObject {
  if (object.metadata.deletionTimestamp === undefined) return object
  const { deletionTimestamp: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** The value as an object of the API: metadata is there, and its maps and lists are what they should be. */
function objectOf(value: unknown): KubeObject | undefined {
  if (!isRecord(value)) return undefined
  const { metadata } = value
  return isRecord(metadata) && isMetadata(metadata) ? { ...value, metadata } : undefined
}

function isMetadata(value: Record<string, unknown>): value is Record<string, unknown> & ObjectMeta {
  const { labels, annotations, ownerReferences, finalizers } = value
  return (
    ['name', 'generateName', 'namespace', 'uid', 'deletionTimestamp'].every((key) => isAbsentOr(value[key], isText)) &&
    isAbsentOr(labels, isTextMap) &&
    isAbsentOr(annotations, isTextMap) &&
    isAbsentOr(ownerReferences, (owners) => Array.isArray(owners) && owners.every(isOwner)) &&
    isAbsentOr(finalizers, (names) => Array.isArray(names) && names.every(isText))
  )
}

const isAbsentOr = (value: unknown, check: (value: unknown) => boolean) => value === undefined || check(value)
const isText = (value: unknown) => typeof value === 'string'
const isTextMap = (value: unknown) => isRecord(value) && Object.values(value).every(isText)
const isOwner = (value: unknown) =>
  isRecord(value) && isText(value['kind']) && isText(value['name']) && isText(value['uid'])

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}
