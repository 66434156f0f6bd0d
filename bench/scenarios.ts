import type { Scenario } from './scenario.ts'
import { fill } from './scenarios/fill.ts'
import { gateDirect } from './scenarios/gate-direct.ts'
import { gateThroughApi } from './scenarios/gate-through-api.ts'
import { growth } from './scenarios/growth.ts'
import { start } from './scenarios/start.ts'
import { burst100, burst300, steady } from './scenarios/warm-claims.ts'
import { writes } from './scenarios/writes.ts'

/** Everything that is measured, in the order of `docs/performance.md`. */
export const scenarios: readonly Scenario[] = [
  gateDirect,
  gateThroughApi,
  steady,
  burst100,
  burst300,
  writes,
  fill,
  growth,
  start,
]
