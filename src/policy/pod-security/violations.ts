import type { Violation } from '../rule.ts'
import { baseline } from './baseline.ts'
import type { AnyContainer, Check, Objection, PodSecurityLevel, PodUnderTest } from './check.ts'
import { restricted } from './restricted.ts'

export interface PodSecurityQuestion {
  readonly pod: PodUnderTest
  readonly level: PodSecurityLevel
  /** Paths of the findings begin with these: `spec.podTemplate.spec` and `spec.podTemplate`. */
  readonly specPath: string
  readonly podPath: string
  /** The containers to judge; the Pod itself is judged unless `containersOnly`. */
  readonly containers: readonly { readonly at: string; readonly container: AnyContainer }[]
  readonly containersOnly?: boolean
}

/** How a Pod breaks the Pod Security Standard of a level. Messages name containers and values, not positions. */
export function podSecurityViolations(question: PodSecurityQuestion): Violation[] {
  const { pod, level, specPath, podPath, containers, containersOnly } = question
  return checksFor(level, pod).flatMap((check) => [
    ...(containersOnly ? [] : (check.pod?.(pod) ?? [])).map((objection) => ({
      field: objection.at.startsWith('metadata') ? `${podPath}.${objection.at}` : `${specPath}.${objection.at}`,
      message: explain(check, objection, 'the Pod'),
    })),
    ...containers.flatMap(({ at, container }) =>
      (check.container?.(container, pod) ?? []).map((objection) => ({
        field: `${specPath}.${at}.${objection.at}`,
        message: explain(check, objection, `container ${container.name}`),
      })),
    ),
  ])
}

function checksFor(level: PodSecurityLevel, { spec }: PodUnderTest): readonly Check[] {
  return level === 'restricted' && spec.os?.name !== 'windows' ? [...baseline, ...restricted] : baseline
}

function explain({ level, advice }: Check, { found }: Objection, who: string): string {
  return `${who} breaks Pod Security ${level}: ${found}. ${advice}`
}
