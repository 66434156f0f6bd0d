import type { SandboxClaim, SandboxTemplate } from '../api/kinds.ts'
import { annotations, conditionTypes } from '../api/vocabulary.ts'
import { findCondition } from '../planning/conditions.ts'
import { isSandboxSet } from '../planning/pools.ts'
import { templateRefusal } from '../planning/template-refusal.ts'
import { evaluate } from '../policy/evaluate.ts'
import type { Facts, Finding, Known, Pool } from '../policy/rule.ts'
import { rules } from '../policy/rules.ts'
import type { ControllerDependencies } from './dependencies.ts'
import { indexes } from './indexes.ts'

/** Admission's rules, applied to what is stored: the webhook may have been off, or a rule may be younger than an object. */

/** Who made a change is not known any more, so rules that judge the change itself are left to admission. */
const stateRules = rules.filter((rule) => rule.judges === 'state')

/** What enforced rules have against a stored claim. One that is bound already is not counted against its namespace's quota. */
export function claimRefusals(
  claim: SandboxClaim,
  { pool, template, isUnbound }: { pool: Known<Pool>; template: Known<SandboxTemplate>; isUnbound: boolean },
  deps: ControllerDependencies,
  now: number,
): readonly Finding[] {
  const namespace = claim.metadata.namespace ?? ''
  const config = deps.config()
  const username = claim.metadata.annotations?.[annotations.requestedBy] ?? ''
  const isCounted = isUnbound && config.claims.maxPerNamespace !== undefined
  const facts: Facts = { pool, template, ...(isCounted && { claimsInNamespace: claimsAhead(claim, deps) }) }
  return evaluate(
    { kind: 'SandboxClaim', operation: 'CREATE', namespace, object: claim, actor: 'user', username },
    { now, config, facts },
    namespaceView(namespace, deps),
    stateRules,
  ).filter((finding) => finding.mode === 'enforce')
}

/** What enforced rules have against making a sandbox for a claim on this pool. */
export function templateRefusals(
  pool: Known<Pool>,
  template: Known<SandboxTemplate>,
  deps: ControllerDependencies,
  now: number,
): string | undefined {
  if (pool.kind !== 'found' || template.kind !== 'found') return undefined
  const { value } = pool
  const isInline = isSandboxSet(value) && value.spec.templateRef === undefined
  const context = { config: deps.config(), now, namespace: namespaceView(value.metadata.namespace ?? '', deps) }
  return templateRefusal(value, isInline ? undefined : template.value, context)
}

/** Live claims that have a better right to a sandbox: those that have one, and the older ones, so that the youngest are refused. */
function claimsAhead(claim: SandboxClaim, { informers }: ControllerDependencies): number {
  const inNamespace = informers.claims.store.indexed(indexes.namespace, claim.metadata.namespace ?? '')
  return inNamespace.filter(
    (other) =>
      other.metadata.uid !== claim.metadata.uid &&
      isLive(other) &&
      (other.status?.sandbox?.name !== undefined || isOlder(other, claim)),
  ).length
}

/** Neither on its way out nor done with its work. */
function isLive({ metadata, status }: SandboxClaim): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    findCondition(status?.conditions, conditionTypes.finished)?.status !== 'True'
  )
}

function isOlder({ metadata: a }: SandboxClaim, { metadata: b }: SandboxClaim): boolean {
  const [bornA = '', bornB = ''] = [a.creationTimestamp, b.creationTimestamp]
  return bornA === bornB ? (a.uid ?? '') < (b.uid ?? '') : bornA < bornB
}

function namespaceView(namespace: string, { informers }: ControllerDependencies) {
  return { labels: informers.namespaces.store.get(namespace)?.metadata.labels ?? {} }
}
