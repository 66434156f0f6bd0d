import { poolKindOf, type Pool } from './pools.ts'
import type { RecipeOrObstacle } from './recipe.ts'

/**
 * Of the pools that share the pool's hash, the first that is older than it, or undefined. The hash is the value of the label
 * that marks the stock, so only one of them can have it: the oldest, by creation time and then by UID.
 */
export function olderNamesake(pool: Pool, sameHash: Iterable<Pool>): Pool | undefined {
  for (const other of sameHash) if (isOlder(other, pool)) return other
  return undefined
}

function isOlder({ metadata: a }: Pool, { metadata: b }: Pool): boolean {
  const [aTime, bTime] = [a.creationTimestamp ?? '', b.creationTimestamp ?? '']
  return aTime < bTime || (aTime === bTime && (a.uid ?? '') < (b.uid ?? ''))
}

/** The recipe, unless an older pool has the hash: then the younger makes nothing, and says so. */
export function recipeBeside(namesake: Pool | undefined, pool: Pool, recipe: RecipeOrObstacle): RecipeOrObstacle {
  if (!namesake || recipe.kind === 'obstacle') return recipe
  const { templateRefHash } = recipe
  const message =
    `The name "${pool.metadata.name}" has the same hash as ${poolKindOf(namesake)} ${namesake.metadata.name}, which is ` +
    'older, and labels tell their sandboxes apart by it. Create this pool under another name.'
  return { kind: 'obstacle', templateRefHash, reason: 'NameCollision', message }
}
