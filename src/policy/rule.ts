import type { Pod, NetworkPolicy } from '../api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../api/kinds.ts'
import type { claimReasons } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import type { ErrorCause } from '../kube/errors.ts'
import type { KubeObject } from '../kube/object.ts'

export const modes = ['enforce', 'warn', 'audit', 'off'] as const
/** enforce denies, warn is printed by kubectl, audit is only recorded, off does not run. */
export type Mode = (typeof modes)[number]

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

/** The objects that rules judge, by kind. */
export interface Subjects {
  SandboxClaim: SandboxClaim
  SandboxTemplate: SandboxTemplate
  SandboxWarmPool: SandboxWarmPool
  SandboxSet: SandboxSet
  Sandbox: Sandbox
  Pod: Pod
}
export type SubjectKind = keyof Subjects

/** Who makes the change, by the user name and groups of the request; never by anything the object says. */
export type Actor =
  | 'controller' // one of our service accounts, or a configured implementation's
  | 'collector' // garbage collector, namespace controller, or the controller manager as one user
  | 'trusted' // admission.trustedUsers: backup tools
  | 'break-glass' // the configured group
  | 'user'

/**
 * One change to judge. For DELETE `object` is the object that goes. For `scale` only metadata and `spec.replicas` of
 * the pool are there; for `ephemeralcontainers` the Pod may lack everything but `spec.ephemeralContainers`.
 */
export interface Subject<K extends SubjectKind = SubjectKind> {
  readonly kind: K
  readonly operation: Operation
  readonly subresource?: 'scale' | 'ephemeralcontainers'
  readonly namespace: string
  readonly object: Subjects[K]
  /** Present on UPDATE. */
  readonly oldObject?: Subjects[K]
  readonly actor: Actor
  readonly username: string
}

/** What is known of something outside the object. A rule never guesses from `unknown`. */
export type Known<T> =
  | { readonly kind: 'found'; readonly value: T }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unknown'; readonly because: string }

export type Pool = SandboxWarmPool | SandboxSet

/** Facts gathered before the rules run; an absent one counts as unknown. */
export interface Facts {
  /** The pool that a claim names, and the template behind a claim or a pool (a set's inline template included). */
  readonly pool?: Known<Pool>
  readonly template?: Known<SandboxTemplate>
  /** The Sandbox that bears the claim's name. */
  readonly sandboxOfName?: Known<Sandbox>
  /** The claim that controls a Sandbox, read live. */
  readonly owningClaim?: Known<SandboxClaim>
  /** The NetworkPolicy that bears the name a template's own would have. */
  readonly networkPolicy?: Known<NetworkPolicy>
  /** Names of pools that refer to a template. */
  readonly poolsOfTemplate?: readonly string[]
  /** Another object of the namespace whose name hashes alike. */
  readonly sameHash?: Known<KubeObject>
  /** What the API server said to a dry-run Pod; `unknown` for quota, missing service account, slowness. */
  readonly dryRun?: Known<
    { readonly accepted: true } | { readonly accepted: false; readonly causes: readonly ErrorCause[] }
  >
  /** The Pod whose ephemeral containers change: older servers send them without the Pod's labels and volumes. */
  readonly pod?: Known<Pod>
  /** Live claims in the namespace, this one not counted. */
  readonly claimsInNamespace?: number
  /** Claims that this user made through this replica within the last minute. */
  readonly claimsByUserLastMinute?: number
}

export interface RuleContext {
  /** Milliseconds since the epoch, by the API server's clock. */
  readonly now: number
  readonly config: PolicyConfig
  readonly facts: Facts
}

export interface Violation {
  /** Path in the object, e.g. `spec.env[0].name`. */
  readonly field: string
  /** What is wrong and what to do about it, without field and rule id (both are added). */
  readonly message: string
  /** At most this mode, for findings that are softer than their rule, e.g. an unfinished dry-run. */
  readonly atMost?: Mode
}

/** One admission rule: a row of the table. */
export interface Rule<K extends SubjectKind = SubjectKind> {
  /** `family/name`, unique. */
  readonly id: string
  readonly kinds: readonly K[]
  readonly on: readonly Operation[]
  /** Also, or only, for these subresources; absent: the object itself. */
  readonly subresources?: readonly ('' | 'scale' | 'ephemeralcontainers')[]
  /**
   * `state` rules look at the new object; on UPDATE a violation the old object already had becomes a warning.
   * `change` rules judge the difference between old and new and who makes it.
   */
  readonly judges: 'state' | 'change'
  /** Protects other tenants: neither a namespace nor its owner can lower it. */
  readonly integrity: boolean
  readonly mode: Mode
  /** The Ready reason of a stored claim that breaks this rule. */
  readonly claimReason?: (typeof claimReasons)[keyof typeof claimReasons]
  /** For docs/rules.md: what it refuses, why, how to relax it. One plain sentence each. */
  readonly refuses: string
  readonly why: string
  readonly relax: string
  /**
   * The part of the object for which this rule's facts were gathered, e.g. the pool that a claim names. Once it
   * changes, what the old object would have broken under the new facts is no excuse for the new one.
   */
  factsAbout?(object: Subjects[K]): unknown
  check(subject: Subject<K>, context: RuleContext): readonly Violation[]
}

/** A violation with the rule it broke and the mode that applied. */
export interface Finding {
  readonly rule: string
  readonly field: string
  /** Complete sentence with advice, ending in the rule id in parentheses, beginning with the field. */
  readonly message: string
  readonly mode: Exclude<Mode, 'off'>
  /** Why an enforced rule does not deny: the object was so before, the user broke glass, or the namespace asked. */
  readonly lowered?: 'ratchet' | 'break-glass' | 'namespace'
  readonly claimReason?: Rule['claimReason']
}
