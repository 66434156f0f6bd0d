import fc from 'fast-check'
import t from 'tap'
import type { SandboxSet } from '../../src/api/kinds.ts'
import { cleanHistory } from '../../src/planning/pool-history.ts'
import { planPool, type PoolPlan } from '../../src/planning/plan-pool.ts'
import type { Member, PoolView } from '../../src/planning/pool-view.ts'
import type { Recipe } from '../../src/planning/recipe.ts'
import { aSet, member, noon, recipeFor, second, viewOf } from '../support/pool-fixtures.ts'

const images = ['a:1', 'a:2']
const recipes = images.map((image) => recipeFor(aSet(inline(image))))

function inline(image: string) {
  return { template: { spec: { containers: [{ name: 'main', image }] } } }
}

type Step =
  | { readonly do: 'plan' }
  | { readonly do: 'deliver'; readonly count: number }
  | { readonly do: 'ready' | 'unready' | 'fail' | 'claim' | 'vanish'; readonly which: number }
  | { readonly do: 'scale'; readonly replicas: number }
  | { readonly do: 'template'; readonly which: number }
  | { readonly do: 'wait'; readonly seconds: number }

const which = fc.nat(40)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ do: 'plan' } as const) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('deliver' as const), count: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('ready' as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('unready' as const, 'fail' as const, 'claim' as const, 'vanish' as const),
      which,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('scale' as const), replicas: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('template' as const), which: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 60, 400) }) },
)
const limit = fc.option(fc.oneof(fc.nat(12), fc.constantFrom('20%', '50%')), { nil: undefined })

/** A sandbox as it really is. `version` grows with every change, as resource versions do. */
interface Real {
  readonly name: string
  readonly recipe: Recipe
  readonly createdAt: number
  state: 'creating' | 'ready' | 'failed'
  changedAt: number
  isClaimed: boolean
  version: number
}

interface Limits {
  readonly maxCreating: number | string | undefined
  readonly maxUnavailable: number | string | undefined
  readonly maxBatch: number
}

/** A cluster with one pool, whose controller sees it through a watch that lags as far as the test says. */
class World {
  readonly real = new Map<string, Real>()
  readonly #cache = new Map<string, Real>()
  readonly #news: { name: string; object: Real | undefined }[] = []
  readonly #issuedCreates = new Set<string>()
  readonly #issuedDeletes = new Set<string>()
  readonly #set: Limits
  #replicas = 3
  #image = 0
  #now = noon
  #names = 0
  #history = cleanHistory

  constructor(set: Limits) {
    this.#set = set
  }

  take(next: Step): void {
    switch (next.do) {
      case 'plan':
        return this.#plan()
      case 'deliver':
        for (const { name, object } of this.#news.splice(0, next.count)) {
          if (object) this.#cache.set(name, object)
          else this.#cache.delete(name)
        }
        return
      case 'scale':
        this.#replicas = next.replicas
        return
      case 'template':
        this.#image = next.which
        return
      case 'wait':
        this.#now += next.seconds * second
        return
      default: {
        const stock = this.unclaimed()
        const object = stock[next.which % Math.max(1, stock.length)]
        if (object) this.#happen(next.do, object)
      }
    }
  }

  unclaimed(): Real[] {
    return [...this.real.values()].filter(({ isClaimed }) => !isClaimed)
  }

  #happen(what: 'ready' | 'unready' | 'fail' | 'claim' | 'vanish', object: Real): void {
    if (what === 'vanish') return this.#remove(object)
    if (what === 'claim') object.isClaimed = object.state === 'ready'
    else if (object.state !== 'failed')
      object.state = ({ ready: 'ready', unready: 'creating', fail: 'failed' } as const)[what]
    object.changedAt = this.#now
    this.#tell(object)
  }

  #tell(object: Real): void {
    object.version += 1
    this.#news.push({ name: object.name, object: object.isClaimed ? undefined : { ...object } })
  }

  #remove(object: Real): void {
    this.real.delete(object.name)
    this.#news.push({ name: object.name, object: undefined })
  }

  #plan(): void {
    const view = this.#view()
    const plan = planPool(view, this.#now)
    const before = this.unclaimed().length
    for (const { sandbox } of plan.remove) {
      const name = sandbox.metadata.name ?? ''
      const object = this.real.get(name)
      // The precondition: whatever has changed since the cache saw it is left alone.
      if (object && object.version === this.#cache.get(name)?.version) {
        this.#issuedDeletes.add(`uid-of-${name}`)
        this.#remove(object)
      }
    }
    const failed = plan.remove.filter(({ sandbox }) => this.real.has(sandbox.metadata.name ?? '')).length
    for (let i = 0; i < plan.create - failed; i++) this.#create(view.recipe as Recipe)
    this.#history = plan.history
    this.#check(view, plan, before)
  }

  #create(recipe: Recipe): void {
    const name = `s-${this.#names++}`
    const object: Real = {
      name,
      recipe,
      createdAt: this.#now,
      state: 'creating',
      changedAt: this.#now,
      isClaimed: false,
      version: 0,
    }
    this.real.set(name, object)
    this.#issuedCreates.add(name)
    this.#tell(object)
  }

  #view(): PoolView {
    // What the cache has come to show, even if only on its way out, is no longer expected.
    for (const name of this.#issuedCreates) {
      const isOnItsWay = this.#news.some((news) => news.name === name && news.object !== undefined)
      if (this.#cache.has(name) || !isOnItsWay) this.#issuedCreates.delete(name)
    }
    for (const uid of this.#issuedDeletes) if (!this.#cache.has(uid.slice(7))) this.#issuedDeletes.delete(uid)
    const { maxCreating, maxUnavailable, maxBatch } = this.#set
    const set: SandboxSet = aSet({
      replicas: this.#replicas,
      ...inline(images[this.#image] ?? ''),
      ...(maxCreating !== undefined && { scaleStrategy: { maxUnavailable: maxCreating } }),
      ...(maxUnavailable !== undefined && { updateStrategy: { maxUnavailable } }),
    })
    return {
      ...viewOf(set, { recipe: recipes[this.#image]! }),
      maxBatch,
      members: Array.from(this.#cache.values(), (object) => this.#member(object)),
      issuedCreates: this.#issuedCreates.size,
      issuedDeletes: new Set(this.#issuedDeletes),
      history: this.#history,
    }
  }

  #member(object: Real): Member {
    return member(object.recipe, object.name, {
      state: object.state,
      ageMs: noon - object.createdAt,
      unreadyMs: noon - object.changedAt,
    })
  }

  #check(view: PoolView, plan: PoolPlan, before: number): void {
    const after = this.unclaimed().length
    if (after > Math.max(view.desired, before)) throw new Error(`${after} not terminating, desired ${view.desired}`)
    if (plan.create + plan.remove.length > view.maxBatch) throw new Error('more than a batch')
    const creating = plan.kept.filter(({ state }) => state === 'creating').length + view.issuedCreates
    if (plan.create > 0 && creating + plan.create > view.maxCreating) throw new Error('more creating than allowed')
    const gone = new Set(
      plan.remove.filter(({ because }) => because === 'stale').map(({ sandbox }) => sandbox.metadata.name),
    )
    const cached = Array.from(this.#cache.values()).filter(({ name }) => gone.has(name))
    const available = plan.kept.filter(({ state }) => state === 'available').length
    const floor = view.strategy.kind === 'rolling' ? view.desired - view.strategy.maxUnavailable : 0
    if (cached.some(({ state }) => state === 'ready') && available < floor) {
      throw new Error(`${available} available after an update step, floor ${floor}`)
    }
  }
}

const settings = fc.record({ maxCreating: limit, maxUnavailable: limit, maxBatch: fc.constantFrom(1, 3, 300) })

t.test('no history of adds, claims, failures, updates and lagging watches makes a plan exceed its caps', async (t) => {
  fc.assert(
    fc.property(settings, fc.array(step, { maxLength: 120 }), (set, steps) => {
      const world = new World(set)
      for (const next of steps) world.take(next)
    }),
    { numRuns: 2_000 },
  )
  t.pass()
})

t.test('left alone with a working template, a pool arrives at what was asked for', async (t) => {
  const limits = fc.record({
    maxCreating: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    maxUnavailable: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    maxBatch: fc.constantFrom(2, 300),
  })
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 60 }), (set, steps) => {
      const world = new World(set)
      for (const next of steps) world.take(next)
      world.take({ do: 'scale', replicas: 5 })
      world.take({ do: 'template', which: 1 })
      for (let round = 0; round < 60; round++) {
        world.take({ do: 'plan' })
        world.take({ do: 'deliver', count: 1000 })
        for (let i = 0; i < world.unclaimed().length; i++) world.take({ do: 'ready', which: i })
        world.take({ do: 'deliver', count: 1000 })
        world.take({ do: 'wait', seconds: 400 })
      }
      const stock = world.unclaimed()
      const isThere =
        stock.length === 5 && stock.every(({ state, recipe }) => state === 'ready' && recipe === recipes[1])
      if (!isThere) throw new Error(JSON.stringify(stock.map(({ name, state }) => ({ name, state }))))
    }),
    { numRuns: 60 },
  )
  t.pass()
})
