import type { V1Container, V1EphemeralContainer, V1PodSpec } from '@kubernetes/client-node'

export type PodSecurityLevel = 'baseline' | 'restricted'
export type AnyContainer = V1Container | V1EphemeralContainer

/** Something that a check objects to: where, below what it looked at, and what is there. */
export interface Objection {
  readonly at: string
  readonly found: string
}

export interface PodUnderTest {
  readonly spec: V1PodSpec
  readonly annotations: Readonly<Record<string, string>>
}

/** One control of the Pod Security Standards. */
export interface Check {
  readonly level: PodSecurityLevel
  /** What to do instead, as a sentence. */
  readonly advice: string
  /** Looks at the Pod; paths are relative to its spec, or begin with `metadata`. */
  pod?(pod: PodUnderTest): readonly Objection[]
  /** Looks at one container; paths are relative to it. */
  container?(container: AnyContainer, pod: PodUnderTest): readonly Objection[]
}

/** An objection to `value` at `at`, when there is a value that is not among `allowed`. */
export function unless(allowed: readonly unknown[], at: string, value: unknown): Objection[] {
  if (value === undefined || value === null || allowed.includes(value)) return []
  return [{ at, found: `${at.slice(at.lastIndexOf('.') + 1)}: ${JSON.stringify(value)}` }]
}
