import type { Pod } from '../../src/api/core.ts'
import {
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxSet,
  type SandboxSetSpec,
  type SandboxTemplate,
  type SandboxTemplateSpec,
  type SandboxWarmPool,
  type SandboxWarmPoolSpec,
} from '../../src/api/kinds.ts'
import type { Condition } from '../../src/api/schema.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import { apiVersionOf } from '../../src/kube/object.ts'
import { cleanHistory } from '../../src/planning/pool-history.ts'
import { poolSettings, type Member, type PoolView } from '../../src/planning/pool-view.ts'
import { templateOf, type Pool } from '../../src/planning/pools.ts'
import { buildMember, recipeOf, type Recipe } from '../../src/planning/recipe.ts'

/** Noon of a day; every time in these tests is told from it. */
export const noon = Date.UTC(2026, 0, 1, 12)
export const second = 1_000
export const minute = 60_000

export const podSpec = { containers: [{ name: 'main', image: 'python:3.12' }] }

export function aTemplate(spec: Partial<SandboxTemplateSpec> = {}): SandboxTemplate {
  return {
    apiVersion: apiVersionOf(sandboxTemplateKind),
    kind: sandboxTemplateKind.kind,
    metadata: { name: 'python', namespace: 'ns', uid: 'template-uid', generation: 1 },
    spec: { podTemplate: { spec: podSpec }, ...spec },
  }
}

export function aWarmPool(spec: Partial<SandboxWarmPoolSpec> = {}): SandboxWarmPool {
  return {
    apiVersion: apiVersionOf(sandboxWarmPoolKind),
    kind: sandboxWarmPoolKind.kind,
    metadata: { name: 'pool', namespace: 'ns', uid: 'pool-uid', generation: 1 },
    spec: { replicas: 3, sandboxTemplateRef: { name: 'python' }, ...spec },
  }
}

export function aSet(spec: Partial<SandboxSetSpec> = {}): SandboxSet {
  const inline = spec.templateRef ? {} : { template: { spec: podSpec } }
  return {
    apiVersion: apiVersionOf(sandboxSetKind),
    kind: sandboxSetKind.kind,
    metadata: { name: 'demo', namespace: 'ns', uid: 'set-uid', generation: 1 },
    spec: { replicas: 3, ...inline, ...spec },
  }
}

/** The recipe of a pool; with a template of its own for a set, and for a warm pool `aTemplate()`, if none is given. */
export function recipeFor(pool: Pool, template: SandboxTemplate = aTemplate()): Recipe {
  const recipe = recipeOf(pool, templateOf(pool, template), { config: defaultConfig })
  if (recipe.kind !== 'recipe') throw new Error(recipe.message)
  return recipe
}

export interface Looks {
  /** `ready` by default. */
  state?: 'ready' | 'creating' | 'paused' | 'failed'
  /** How long ago it was made, in milliseconds; a minute by default. */
  ageMs?: number
  /** How long ago it lost Ready, for one that is creating. */
  unreadyMs?: number
  shutdownTime?: string
}

export function dressed(
  sandbox: Sandbox,
  { state = 'ready', ageMs = minute, unreadyMs, shutdownTime }: Looks,
): Sandbox {
  const isReady = state === 'ready'
  const reason = {
    ready: 'DependenciesReady',
    creating: 'DependenciesNotReady',
    paused: 'SandboxSuspended',
    failed: 'PodFailed',
  }
  const ready: Condition = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    reason: reason[state],
    message: '',
    lastTransitionTime: new Date(noon - (unreadyMs ?? ageMs)).toISOString(),
  }
  return {
    ...sandbox,
    metadata: {
      ...sandbox.metadata,
      uid: `uid-of-${sandbox.metadata.name}`,
      resourceVersion: '1',
      creationTimestamp: new Date(noon - ageMs).toISOString(),
    },
    spec: {
      ...sandbox.spec,
      ...(state === 'paused' && { operatingMode: 'Suspended' }),
      ...(shutdownTime !== undefined && { shutdownTime }),
    },
    status: { conditions: [ready], ...(isReady && { podIPs: ['10.0.0.1'] }) },
  }
}

/** A proven member of that name, made after the recipe. */
export function member(recipe: Recipe, name: string, looks: Looks & Partial<Omit<Member, 'sandbox'>> = {}): Member {
  const { isOrphan = false, isProvable = true, ...rest } = looks
  return { sandbox: dressed(buildMember(recipe, name, 'proof'), rest), isOrphan, isProvable }
}

/** `count` members that look alike, named `<name>-0` and so on. */
export function members(
  recipe: Recipe,
  count: number,
  name: string,
  looks: Parameters<typeof member>[2] = {},
): Member[] {
  return Array.from({ length: count }, (_, i) => member(recipe, `${name}-${i}`, looks))
}

/** The view of a pool in which nothing special is going on. */
export function viewOf(pool: Pool, view: Partial<PoolView> = {}): PoolView {
  return {
    pool,
    ...poolSettings(pool, defaultConfig),
    recipe: recipeFor(pool),
    members: [],
    podOf: () => undefined,
    issuedCreates: 0,
    issuedDeletes: new Set(),
    history: cleanHistory,
    allowance: { creates: Infinity, nextAt: noon },
    ...view,
  }
}

export function pendingPod(status: Pod['status'], spec?: Partial<NonNullable<Pod['spec']>>): Pod {
  return { metadata: {}, spec: { containers: [], ...spec }, ...(status && { status }) }
}

export const unschedulablePod = pendingPod({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available.' }],
})

export function waitingPod(reason: string): Pod {
  const container = {
    name: 'main',
    image: 'nope:0',
    imageID: '',
    ready: false,
    restartCount: 0,
    state: { waiting: { reason } },
  }
  return pendingPod({ phase: 'Pending', containerStatuses: [container] })
}
