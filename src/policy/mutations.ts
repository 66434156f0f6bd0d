import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate } from '../api/kinds.ts'
import { nameHash } from '../api/hash.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import { durationMs } from '../config/duration.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { applySecureDefaults } from './secure-defaults.ts'
import type { Subject, Subjects } from './rule.ts'

export interface MutationContext {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly config: PolicyConfig
  /** The authenticated user name of the request. */
  readonly requestUser: string
}

/** How far from now a claim's first-observed stamp may lie to be taken for an earlier round of the same request. */
export const observedToleranceMs = 30_000

/**
 * The object as admission stores it: stamps and defaults applied. Returns a copy and leaves the subject alone; applied
 * to its own result within {@link observedToleranceMs} it changes nothing. Subresources, deletions and objects being
 * deleted come back as they are.
 */
export function mutate<S extends Subject>(subject: S, context: MutationContext): S['object'] {
  const copy: Subjects[keyof Subjects] = structuredClone(subject.object)
  // Mutation comes before the server's own schema check: what has no spec is left for that to refuse.
  if (!isObject((copy as { spec?: unknown }).spec)) return copy
  if (subject.operation === 'DELETE' || subject.subresource || isBeingDeleted(subject)) return copy
  const isCreate = subject.operation === 'CREATE'
  switch (subject.kind) {
    case 'SandboxClaim':
      if (isCreate) stampClaim(copy as SandboxClaim, context)
      else restoreStamps(copy as SandboxClaim, subject.oldObject as SandboxClaim | undefined)
      return copy
    case 'SandboxTemplate':
      labelTemplate(copy as SandboxTemplate)
      return copy
    case 'SandboxSet':
      defaultUpdateStrategy(copy as SandboxSet)
      return copy
    case 'Sandbox':
      if (isCreate) secureSandbox(copy as Sandbox, context.config)
      return copy
    case 'SandboxWarmPool':
    case 'Pod':
      return copy
    default:
      return subject.kind satisfies never
  }
}

function isBeingDeleted({ object, oldObject }: Subject): boolean {
  return (oldObject ?? object).metadata.deletionTimestamp !== undefined
}

function stampClaim(claim: SandboxClaim, { now, config, requestUser }: MutationContext): void {
  const stamps: Record<string, string> = { ...claim.metadata.annotations, [annotations.requestedBy]: requestUser }
  const observed = Date.parse(stamps[annotations.webhookFirstObservedAt] ?? '')
  if (!(Math.abs(observed - now) <= observedToleranceMs))
    stamps[annotations.webhookFirstObservedAt] = nanosecondTime(now)
  claim.metadata.annotations = stamps

  const { defaultLifetime, defaultTtlAfterFinished } = config.claims
  const lifecycle = { ...claim.spec.lifecycle }
  if (defaultLifetime) lifecycle.shutdownTime ??= secondTime(now + durationMs(defaultLifetime))
  if (defaultTtlAfterFinished) lifecycle.ttlSecondsAfterFinished ??= durationMs(defaultTtlAfterFinished) / 1000
  if (Object.keys(lifecycle).length > 0) claim.spec.lifecycle = lifecycle
}

/** A replace drops what its author does not know of, and an edit may change it: both get the stored stamps back. */
function restoreStamps(claim: SandboxClaim, old: SandboxClaim | undefined): void {
  for (const key of [annotations.requestedBy, annotations.webhookFirstObservedAt]) {
    const stored = old?.metadata.annotations?.[key]
    if (stored !== undefined) claim.metadata.annotations = { ...claim.metadata.annotations, [key]: stored }
  }
}

function labelTemplate(template: SandboxTemplate): void {
  // With generateName there is no name to hash yet; the controller adds the label then.
  const { name } = template.metadata
  if (name) template.metadata.labels = { ...template.metadata.labels, [labels.templateRefHash]: nameHash(name) }
}

function defaultUpdateStrategy(set: SandboxSet): void {
  set.spec.updateStrategy = {
    ...set.spec.updateStrategy,
    maxUnavailable: set.spec.updateStrategy?.maxUnavailable ?? '20%',
  }
}

function secureSandbox(sandbox: Sandbox, config: PolicyConfig): void {
  // A Sandbox from a template already has the DNS default from the controller that built it.
  const { podTemplate } = sandbox.spec
  if (isObject(podTemplate?.spec))
    podTemplate.spec = applySecureDefaults(podTemplate.spec, { template: undefined, config })
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

const secondTime = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
const nanosecondTime = (ms: number) => new Date(ms).toISOString().replace(/Z$/, '000000Z')
