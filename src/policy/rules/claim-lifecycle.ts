import { canonicalJson } from '../../api/hash.ts'
import type { SandboxClaim } from '../../api/kinds.ts'
import { claimReasons, conditionTypes } from '../../api/vocabulary.ts'
import { durationMs } from '../../config/duration.ts'
import { controllerOf } from '../../kube/object.ts'
import { isDnsLabel, nameOf } from '../names.ts'
import type { Rule, Violation } from '../rule.ts'
import { poolOf } from './claim-facts.ts'

const shared = {
  kinds: ['SandboxClaim'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
} as const

/** Reasons that say that nothing was handed out and that the claim must change, or something must appear. */
const reasonsToEdit: ReadonlySet<string> = new Set([
  claimReasons.warmPoolNotFound,
  claimReasons.templateNotFound,
  claimReasons.invalidMetadata,
  claimReasons.envVarsInjectionRejected,
  claimReasons.volumeClaimTemplatesError,
])

/** A sandbox is made once. A later edit of what it is made of would be a wish that nothing fulfils. */
export const specImmutable: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/spec-immutable',
  on: ['UPDATE'],
  judges: 'change',
  refuses:
    'Changing warmPoolRef, env or volumeClaimTemplates, except while the claim is refused or its pool is missing.',
  why: 'The sandbox that was handed out would not follow, and the claim would describe another one.',
  relax: 'Create another claim.',
  check({ object, oldObject }) {
    if (!oldObject || canStillChange(oldObject)) return []
    const was = makingOf(oldObject)
    const is = makingOf(object)
    return (['warmPoolRef', 'env', 'volumeClaimTemplates'] as const)
      .filter((field) => canonicalJson(was[field]) !== canonicalJson(is[field]))
      .map((field) => ({
        field: `spec.${field}`,
        message: 'it decides which sandbox the claim gets and cannot change any more. Create another claim.',
      }))
  },
}

function canStillChange({ status }: SandboxClaim): boolean {
  const ready = status?.conditions?.find(({ type }) => type === conditionTypes.ready)
  return ready?.status === 'False' && reasonsToEdit.has(ready.reason)
}

function makingOf(claim: SandboxClaim) {
  const { env = [], volumeClaimTemplates = [] } = claim.spec
  return { warmPoolRef: poolOf(claim), env, volumeClaimTemplates }
}

/** A sandbox that starts cold is named like its claim, and its Pod and host name likewise. */
export const claimName: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/name',
  refuses: 'A name that is longer than 63 characters or no DNS label.',
  why: 'A sandbox, its Pod and its host name are named like the claim.',
  relax: 'Choose a name of lower-case letters, digits and "-".',
  check({ object }) {
    const name = nameOf(object.metadata)
    if (isDnsLabel(name)) return []
    const message = `"${name}" is no name for a sandbox. Use lower-case letters, digits and "-", 63 at most.`
    return [{ field: 'metadata.name', message }]
  },
}

/** In one `kubectl apply` the claim may come before its pool: it waits. */
export const claimPoolMissing: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/pool-missing',
  mode: 'warn',
  refuses: 'A claim on a pool that does not exist.',
  why: 'The claim waits until the pool appears.',
  relax: 'Create the pool, or name one that exists.',
  check({ object }, { facts }) {
    if (facts.pool?.kind !== 'missing') return []
    const { kind, name } = poolOf(object)
    const message = `${kind} ${name} does not exist in this namespace; the claim waits for it. Create it, or name another.`
    return [{ field: 'spec.warmPoolRef.name', message }]
  },
}

/** A pool may come before its template, too. */
export const claimTemplateMissing: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/template-missing',
  mode: 'warn',
  refuses: 'A claim on a pool whose template does not exist.',
  why: 'Without a template policy cannot be judged, so the claim waits until it appears.',
  relax: 'Create the template.',
  check({ object }, { facts }) {
    if (facts.pool?.kind !== 'found' || facts.template?.kind !== 'missing') return []
    const { kind, name } = poolOf(object)
    const message = `the template of ${kind} ${name} does not exist; the claim waits for it. Create the template.`
    return [{ field: 'spec.warmPoolRef.name', message }]
  },
}

/** Only a warning: warm sandboxes have names of their own, so the claim may well be served. */
export const claimNameTaken: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/name-taken',
  on: ['CREATE'],
  mode: 'warn',
  refuses: "A claim whose name is that of someone else's Sandbox.",
  why: 'Should the pool be empty, the sandbox that is started for the claim could not have its name.',
  relax: 'Choose another name.',
  check({ object }, { facts }) {
    if (facts.sandboxOfName?.kind !== 'found') return []
    const owner = controllerOf(facts.sandboxOfName.value)
    // At admission a new claim has no UID, so a sandbox of a predecessor counts as someone else's: it is, until it goes.
    if (owner !== undefined && owner.uid === object.metadata.uid) return []
    const message = `Sandbox ${object.metadata.name} exists and is not this claim's; only a warm sandbox can serve it. Choose another name.`
    return [{ field: 'metadata.name', message }]
  },
}

/** How far the clocks of the API server and of the gate may be apart without a default lifetime being refused. */
const clockToleranceMs = 60_000

/** A claim that ends before it begins is a mistake; one that never ends is a leak, where a limit is set. */
export const claimExpiry: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/expiry',
  refuses: 'A shutdownTime in the past, or further from creation than claims.maxLifetime.',
  why: 'The claim would expire at once, or hold its sandbox for longer than the cluster allows.',
  relax: 'Choose an earlier or later time, or raise claims.maxLifetime in the configuration.',
  check({ object }, { now, config }): Violation[] {
    const field = 'spec.lifecycle.shutdownTime'
    const { shutdownTime } = object.spec.lifecycle ?? {}
    const { maxLifetime } = config.claims
    if (shutdownTime === undefined) {
      if (maxLifetime === undefined) return []
      return [{ field, message: `claims here live for ${maxLifetime} at most. Set a shutdownTime within that.` }]
    }
    const at = Date.parse(shutdownTime)
    if (!(at > now)) return [{ field, message: `${shutdownTime} is not in the future. Choose a later time.` }]
    if (maxLifetime === undefined) return []
    const created = Date.parse(object.metadata.creationTimestamp ?? '') || now
    if (at <= created + durationMs(maxLifetime) + clockToleranceMs) return []
    const message = `${shutdownTime} is more than ${maxLifetime} after creation, the most that claims.maxLifetime allows. Choose an earlier time.`
    return [{ field, message }]
  },
}

/** Both limits are off by default. The reconciler counts again, since two requests may be judged at once. */
export const claimQuota: Rule<'SandboxClaim'> = {
  ...shared,
  id: 'claim/quota',
  on: ['CREATE'],
  claimReason: claimReasons.quotaExceeded,
  refuses: 'Claims beyond claims.maxPerNamespace, or made faster than claims.maxCreatesPerMinute.',
  why: 'Every claim holds a sandbox, and one tenant must not use up what all share.',
  relax: 'Delete claims, or raise the limits in the configuration.',
  check({ username }, { config, facts }) {
    const { maxPerNamespace, maxCreatesPerMinute } = config.claims
    const { claimsInNamespace = 0, claimsByUserLastMinute = 0 } = facts
    const violations: Violation[] = []
    if (maxPerNamespace !== undefined && claimsInNamespace >= maxPerNamespace) {
      const message = `the namespace has ${claimsInNamespace} claims and may have ${maxPerNamespace}. Delete one first.`
      violations.push({ field: 'metadata.namespace', message })
    }
    if (maxCreatesPerMinute !== undefined && claimsByUserLastMinute >= maxCreatesPerMinute) {
      const message = `${username} may create ${maxCreatesPerMinute} claims a minute. Wait a minute and try again.`
      violations.push({ field: 'metadata.name', message })
    }
    return violations
  },
}
