import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { blueprintHash, blueprintOf } from './blueprint.ts'
import type { Recipe, RecipeOrObstacle } from './recipe.ts'

export interface FreshnessQuestion {
  readonly sandbox: Sandbox
  /** It has the pool's label but no controller: whoever removed that may have changed its labels too. */
  readonly isOrphan: boolean
}

/**
 * Judges whether sandboxes are what their pool would make now. One judge serves one pass over a pool.
 *
 *  1. The template-ref hash is another template's → stale.
 *  2. An orphan → by its blueprint; its labels are not trusted.
 *  3. The label with the blueprint's hash (for a SandboxSet: the revision) is the current one → fresh.
 *  4. The current hash cannot be computed → fresh: stock is never destroyed on doubt.
 *  5. An old hash that was judged already → the same verdict.
 *  6. By its blueprint, compared by meaning with the one that would be made now, secure defaults included. Other versions
 *     of this program may have written the old hash, so that it differs says nothing. Not so a SandboxSet's revision:
 *     it covers more than the blueprint, and is hashed by meaning itself, so another revision → stale.
 *
 * Labels, annotations and policies of a SandboxTemplate are no part of the blueprint.
 */
export function freshnessJudge(recipe: RecipeOrObstacle): (question: FreshnessQuestion) => boolean {
  const judged = new Map<string, boolean>()
  return ({ sandbox, isOrphan }) => {
    const own = sandbox.metadata.labels ?? {}
    if (own[labels.templateRefHash] !== recipe.templateRefHash) return false // 1
    if (recipe.kind === 'obstacle') return true // 4: before what needs the hash
    if (isOrphan) return isSameBlueprint(sandbox, recipe) // 2
    const revision = own[recipe.revisionLabel]
    if (revision === recipe.revision) return true // 3
    if (revision === undefined) return isSameBlueprint(sandbox, recipe) // 6
    if (recipe.revisionLabel === labels.setTemplateHash) return false // 6
    const known = judged.get(revision)
    if (known !== undefined) return known // 5
    const isFresh = isSameBlueprint(sandbox, recipe) // 6
    judged.set(revision, isFresh)
    return isFresh
  }
}

/** Hashes are taken over the meaning, so comparing them compares that. */
function isSameBlueprint(sandbox: Sandbox, { freshHashes }: Recipe): boolean {
  return freshHashes.has(blueprintHash(blueprintOf(sandbox)))
}
