import { nameHash } from '../api/hash.ts'
import { sandboxTemplateKind } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { isKubeError } from '../kube/errors.ts'
import { identitiesOfPolicy, type TemplateIdentity } from '../planning/network-policy.ts'
import { planNetworkPolicy } from '../planning/plan-network-policy.ts'
import { referencedTemplate, type Pool } from '../planning/pools.ts'
import { nameOf } from '../planning/sandbox-identity.ts'
import { runController, type Outcome } from '../runtime/controller.ts'
import { createControllerQueue } from './controller-queue.ts'
import type { Controller, ControllerDependencies } from './dependencies.ts'
import { actOnPolicy } from './template-act.ts'
import { gatherTemplate, identityOfKey, setTemplateRef, templateKey, templateOf } from './template-gather.ts'
import { reportToPools } from './template-report.ts'

/** Templates change rarely. */
const concurrency = 4

/** Keeps the template-ref hash on every template, and one NetworkPolicy for all sandboxes of each. */
export function createTemplateController(deps: ControllerDependencies): Controller {
  const { informers, clock, log } = deps
  const queue = createControllerQueue('template', deps)
  /** Since when the policy of a template that is gone has been seen to be out of use. Lost with the process: the wait starts anew. */
  const unusedSince = new Map<string, number>()
  /** Templates whose pools have been told of trouble: a pool that joins them must be told too. */
  const inTrouble = new Set<string>()

  const reconcile = async (key: string): Promise<Outcome> => {
    const identity = identityOfKey(key)
    await labelTemplate(identity, deps)
    const view = gatherTemplate(identity, unusedSince.get(key), deps)
    const plan = planNetworkPolicy(view, clock.now())
    if (plan.kind === 'wait' && plan.isUnused) unusedSince.set(key, view.unusedSince ?? clock.now())
    else unusedSince.delete(key)

    let end = await actOnPolicy(plan, identity, deps)
    if (end.kind === 'met') {
      end = await actOnPolicy(planNetworkPolicy({ ...view, policy: end.policy }, clock.now()), identity, deps)
    }
    if (end.kind === 'met') return { kind: 'recheck', afterMs: 1_000, because: 'its NetworkPolicy comes and goes' }
    if (end.complaint) inTrouble.add(key)
    else inTrouble.delete(key)
    await reportToPools(identity, end.complaint, deps)
    return end.outcome
  }

  const wake = (identity: TemplateIdentity) => queue.add(templateKey(identity))
  informers.templates.onChange(({ object: { metadata } }) => {
    wake({ namespace: metadata.namespace ?? '', templateRef: metadata.name ?? '' })
  })
  informers.sets.onChange(({ object }) => {
    wake({ namespace: object.metadata.namespace ?? '', templateRef: setTemplateRef(nameOf(object)) })
    wakeTroubled(object)
  })
  informers.warmPools.onChange(({ object }) => wakeTroubled(object))
  informers.networkPolicies.onChange(({ object }) => {
    for (const identity of identitiesOfPolicy(object)) wake(identity)
  })
  deps.onConfigChange(() => {
    for (const { metadata } of informers.templates.store.values()) {
      wake({ namespace: metadata.namespace ?? '', templateRef: metadata.name ?? '' })
    }
    for (const set of informers.sets.store.values()) {
      wake({ namespace: set.metadata.namespace ?? '', templateRef: setTemplateRef(nameOf(set)) })
    }
  })

  function wakeTroubled(pool: Pool): void {
    const templateRef = referencedTemplate(pool)
    if (templateRef === undefined) return
    const identity = { namespace: pool.metadata.namespace ?? '', templateRef }
    if (inTrouble.has(templateKey(identity))) wake(identity)
  }

  return {
    name: 'template',
    queue,
    run: (signal) => runController({ name: 'template', queue, reconcile, concurrency, clock, log }, signal),
  }
}

/** The mutating webhook stamps the label too; this is for templates that are older than it, or were made without it. */
async function labelTemplate(identity: TemplateIdentity, { informers, client }: ControllerDependencies): Promise<void> {
  const template = templateOf(identity, informers)
  if (!template || template.kind === 'SandboxSet') return
  const hash = nameHash(identity.templateRef)
  if (template.metadata.labels?.[labels.templateRefHash] === hash) return
  const ref = { namespace: identity.namespace, name: identity.templateRef }
  const patch = { metadata: { uid: template.metadata.uid, labels: { [labels.templateRefHash]: hash } } }
  try {
    await client.patch(sandboxTemplateKind, ref, patch, { type: 'merge' })
  } catch (error) {
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
  }
}
