import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'

/** Whether the sandbox came from a pool or was started for its claim. */
export function launchTypeOf(sandbox: Sandbox): 'warm' | 'cold' {
  return sandbox.metadata.labels?.[labels.launchType] === 'cold' ? 'cold' : 'warm'
}
