import type { Scenario } from './scenario.ts'
import { gateDirect } from './scenarios/gate-direct.ts'

/** Everything that is measured, in the order of `docs/performance.md`. */
export const scenarios: readonly Scenario[] = [gateDirect]
