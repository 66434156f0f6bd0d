import type { Sandbox, SandboxTemplate } from '../api/kinds.ts'
import { annotations, labels } from '../api/vocabulary.ts'
import type { PolicyConfig } from '../config/schema.ts'
import { blueprintHash, blueprintOf, buildSandboxFromTemplate } from './blueprint.ts'
import { isSandboxSet, poolHashOf, poolOwner, referencedTemplate, templateRefHashOf, type Pool } from './pools.ts'
import { setRevision } from './revision.ts'
import { setLabels } from './set-labels.ts'

/** Why no sandbox can be made for a pool at the moment. The reason goes into its conditions. */
export interface Obstacle {
  readonly kind: 'obstacle'
  readonly templateRefHash: string
  readonly reason: 'TemplateNotFound' | 'TemplateRejected' | 'NameCollision'
  readonly message: string
}

/** What a pool's sandboxes are made of now. */
export interface Recipe {
  readonly kind: 'recipe'
  readonly templateRefHash: string
  /** Hash of the blueprint, with secure defaults applied. */
  readonly hash: string
  /**
   * The hashes that members may have: under either network policy. Which one the template has decides over a default of
   * the blueprint (DNS), and policies never make a sandbox stale.
   */
  readonly freshHashes: ReadonlySet<string>
  /** Revision of a SandboxSet; a SandboxWarmPool has none but its hash. */
  readonly revision: string
  /** The label that holds the revision of a member. */
  readonly revisionLabel: string
  /** The Sandbox to create, but for its name and its proof of origin. */
  readonly prototype: Sandbox
}

/** Without a recipe the pool keeps its stock and makes nothing. */
export type RecipeOrObstacle = Recipe | Obstacle

/**
 * The recipe of a pool. `template` is what {@link templateOf} gives; undefined means that it is missing. `refusal` says
 * which rule the template breaks, if it breaks one.
 */
export function recipeOf(
  pool: Pool,
  template: SandboxTemplate | undefined,
  options: { readonly config: PolicyConfig; readonly refusal?: string | undefined },
): RecipeOrObstacle {
  const referenced = referencedTemplate(pool)
  const templateRefHash = templateRefHashOf(pool)
  if (!template) {
    const message = `SandboxTemplate ${referenced} does not exist in namespace ${pool.metadata.namespace}. Create it, or name another.`
    return { kind: 'obstacle', templateRefHash, reason: 'TemplateNotFound', message }
  }
  if (options.refusal !== undefined) {
    return { kind: 'obstacle', templateRefHash, reason: 'TemplateRejected', message: options.refusal }
  }
  const build = (source: SandboxTemplate) =>
    buildSandboxFromTemplate(source, {
      name: '',
      namespace: pool.metadata.namespace ?? '',
      owner: poolOwner(pool),
      launchType: 'warm',
      config: options.config,
      podLabels: { [labels.warmPool]: poolHashOf(pool) },
    })
  const built = build(template)
  const hash = blueprintHash(blueprintOf(built))
  const underEitherPolicy = [closedNetwork(template), openNetwork(template)].map((each) =>
    blueprintHash(blueprintOf(build(each))),
  )
  const revision = isSandboxSet(pool) ? (setRevision(pool, template) ?? hash) : hash
  const podMetadata = built.spec.podTemplate.metadata
  const prototype: Sandbox = {
    ...built,
    metadata: {
      ...built.metadata,
      labels: {
        ...built.metadata.labels,
        [labels.warmPool]: poolHashOf(pool),
        [labels.blueprintHash]: hash,
        ...(isSandboxSet(pool) && setLabels(pool, { revision, isClaimed: false })),
      },
    },
    spec: {
      ...built.spec,
      podTemplate: {
        ...built.spec.podTemplate,
        // An idle sandbox may go when its node is wanted elsewhere; a value of the template's own wins.
        metadata: { ...podMetadata, annotations: { [annotations.safeToEvict]: 'true', ...podMetadata?.annotations } },
      },
    },
  }
  const revisionLabel = isSandboxSet(pool) ? labels.setTemplateHash : labels.blueprintHash
  return {
    kind: 'recipe',
    templateRefHash,
    hash,
    freshHashes: new Set(underEitherPolicy),
    revision,
    revisionLabel,
    prototype,
  }
}

function closedNetwork({ spec: { networkPolicy: _none, ...spec }, ...template }: SandboxTemplate): SandboxTemplate {
  return { ...template, spec: { ...spec, networkPolicyManagement: 'Managed' } }
}

function openNetwork(template: SandboxTemplate): SandboxTemplate {
  return { ...template, spec: { ...template.spec, networkPolicyManagement: 'Unmanaged' } }
}

/** A member of that name, made after the recipe. Everything but the metadata is shared with the prototype. */
export function buildMember(recipe: Recipe, name: string, origin: string): Sandbox {
  const { metadata } = recipe.prototype
  return {
    ...recipe.prototype,
    metadata: {
      ...metadata,
      name,
      annotations: { ...metadata.annotations, [annotations.podName]: name, [annotations.origin]: origin },
    },
  }
}

/** Consonants and digits that neither form words nor look alike, as Kubernetes' own name generator uses. */
const nameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 10
const longestName = 63

/** `<pool>-<10 random characters>`, at most 63 in all. `random` gives numbers in [0, 1). */
export function memberName(poolName: string, random: () => number): string {
  const suffix = Array.from({ length: suffixLength }, () => nameAlphabet[Math.floor(random() * nameAlphabet.length)])
  // What is cut off may leave a separator at the end, and two in a row make no valid name.
  return `${poolName.slice(0, longestName - suffixLength - 1).replace(/[-.]+$/, '')}-${suffix.join('')}`
}
