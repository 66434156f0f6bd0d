import { nameHash } from '../api/hash.ts'
import type { SandboxSet } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'

const longestLabelValue = 63

/** The labels by which users find what was made from a SandboxSet: unclaimed stock, and what claims have. */
export function setLabels(
  set: SandboxSet,
  { revision, isClaimed }: { readonly revision: string; readonly isClaimed: boolean },
): Record<string, string> {
  const name = set.metadata.name ?? ''
  return {
    ...(!isClaimed && { [labels.setPool]: labelValue(name) }),
    [labels.setTemplate]: labelValue(set.spec.templateRef?.name ?? name),
    [labels.setClaimed]: String(isClaimed),
    [labels.setTemplateHash]: revision,
  }
}

/** Names may be longer than the 63 characters of a label: those are cut and told apart by hash. */
function labelValue(name: string): string {
  return name.length <= longestLabelValue ? name : `${name.slice(0, longestLabelValue - 9)}-${nameHash(name)}`
}
