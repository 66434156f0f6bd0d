import { startDeadline } from '../../webhooks/deadline.ts'
import { createFactSource } from '../../webhooks/facts.ts'
import { webhooks } from '../../webhooks/table.ts'
import type { LabelSelector } from '../api/schema.ts'
import type { SchemaProblem } from '../api/validators.ts'
import type { Config } from '../config/schema.ts'
import type { KubeClient } from '../kube/client.ts'
import { keyOf, type KubeObject, type Resource } from '../kube/object.ts'
import { templateOf } from '../planning/pools.ts'
import { actorOf } from '../policy/actor.ts'
import { evaluate } from '../policy/evaluate.ts'
import { mutate } from '../policy/mutations.ts'
import type { Finding, Operation, Subject, SubjectKind } from '../policy/rule.ts'
import type { Clock } from '../runtime/clock.ts'
import { applied } from './applied.ts'
import type { Manifest } from './check-manifests.ts'
import { resourceOf, shapeProblems } from './check-shape.ts'
import { createSurroundings, type KnownObject } from './check-surroundings.ts'

/** Stands in the place of a rule's id for what an object's schema does not allow. No configuration lowers it. */
export const schemaRule = 'schema'

export type LocatedFinding = Finding & { readonly line: number }

/** What admission would say to one manifest. */
export interface Verdict {
  readonly manifest: Manifest
  readonly operation: Extract<Operation, 'CREATE' | 'UPDATE'>
  readonly namespace: string
  readonly findings: readonly LocatedFinding[]
}

export interface Judged {
  readonly verdicts: readonly Verdict[]
  /** Manifests that admission would not ask the gate about, and that tell it nothing about others. */
  readonly skipped: readonly Manifest[]
}

export interface JudgeOptions {
  readonly config: Config
  readonly username: string
  /** For manifests that do not name theirs. */
  readonly namespace: string
  readonly clock: Clock
  /** Absent: nothing is known but the manifests, and rules say nothing of what they do not know. */
  readonly cluster?: {
    readonly client: Pick<KubeClient, 'get' | 'create' | 'serverClockOffsetMs'>
    readonly objects: readonly KnownObject[]
  }
}

/** For one object; a person waits longer than admission may. */
const budgetMs = 10_000

/**
 * Judges manifests as if they were applied together: each knows of the templates and pools among them, whatever their
 * order. Claims are made one after the other, so that each counts towards the quota of those after it.
 */
export async function judge(manifests: readonly Manifest[], options: JudgeOptions): Promise<Judged> {
  const { config, username, clock, cluster } = options
  const surroundings = createSurroundings()
  const stored = new Map<string, KubeObject>()
  for (const object of cluster?.objects ?? []) {
    surroundings.add(object)
    stored.set(`${object.kind} ${keyOf(object)}`, object)
  }
  const changes = manifests.map((manifest) => changeOf(manifest, options.namespace, stored))
  for (const { resource, object, problems } of changes) {
    // Nothing refers to a name that is still to be generated.
    const isNamed = resource && problems.length === 0 && object.metadata.name !== undefined
    if (isNamed && resource.kind !== 'SandboxClaim') surroundings.add(object)
  }

  const facts = createFactSource({
    client: cluster?.client ?? nobody,
    stores: surroundings.stores,
    config: () => config,
    clock,
    templateOf,
  })
  const now = clock.now() + (cluster?.client.serverClockOffsetMs() ?? 0)
  const actor = actorOf({ username, groups: [] }, config)

  async function findingsOn({ resource, problems, object, oldObject, namespace, operation }: Asked) {
    if (problems.length > 0) return problems.map(refusalOfSchema)
    const kind = resource.kind as SubjectKind
    const change = { kind, operation, namespace, object, ...(oldObject && { oldObject }), actor, username } as Subject
    const subject = { ...change, object: mutate(change, { now, config, requestUser: username }) } as Subject
    const around = await facts.gather(subject, startDeadline(clock, budgetMs))
    const { dryRun, ...known } = around.facts
    // Without a cluster nobody could try the Pod, and that would be said of every template.
    const context = { now, config, facts: { ...known, ...(cluster && dryRun && { dryRun }) } }
    const findings = evaluate(subject, context, { labels: around.namespaceLabels })
    if (kind === 'SandboxClaim' && operation === 'CREATE' && !findings.some(isRefusal)) {
      surroundings.add({ ...subject.object, kind })
      facts.noteClaimCreated(username)
    }
    return findings
  }

  const verdicts: Verdict[] = []
  const skipped: Manifest[] = []
  for (const change of changes) {
    const { manifest, operation, namespace } = change
    if (isAsked(change)) {
      const findings = await findingsOn(change)
      const located = findings.map((finding) => ({ ...finding, line: manifest.lineOf(finding.field) }))
      verdicts.push({ manifest, operation, namespace, findings: located })
    } else if (!change.resource || !surroundings.knows(change.resource)) {
      skipped.push(manifest)
    }
  }
  return { verdicts, skipped }
}

export const isRefusal = ({ mode }: Pick<Finding, 'mode'>): boolean => mode === 'enforce'

/** In the place of an API server: what the manifests do not say is unknown. */
const nobody: Pick<KubeClient, 'get' | 'create'> = {
  get: () => Promise.reject(new Error('no cluster is asked')),
  create: () => Promise.reject(new Error('no cluster is asked')),
}

/** What applying a manifest changes. */
interface Change {
  readonly manifest: Manifest
  readonly operation: Verdict['operation']
  readonly namespace: string
  /** Absent for kinds that mean nothing to any rule. */
  readonly resource?: Resource | undefined
  readonly object: KnownObject
  readonly oldObject?: KubeObject | undefined
  /** With the manifest as it is written. */
  readonly problems: readonly SchemaProblem[]
}
type Asked = Change & { readonly resource: Resource }

function changeOf(manifest: Manifest, defaultNamespace: string, stored: ReadonlyMap<string, KubeObject>): Change {
  const { metadata } = manifest.object
  const kind = String(manifest.object.kind)
  const resource = resourceOf(manifest.object)
  const namespace = typeof metadata.namespace === 'string' ? metadata.namespace : defaultNamespace
  const object = {
    ...manifest.object,
    kind,
    metadata: resource?.namespaced === false ? metadata : { ...metadata, namespace },
  }
  const oldObject = stored.get(`${kind} ${keyOf(object)}`)
  return {
    manifest,
    operation: oldObject ? 'UPDATE' : 'CREATE',
    namespace,
    resource,
    object: oldObject ? { ...applied(oldObject, object), kind } : object,
    oldObject,
    problems: resource ? shapeProblems(resource, manifest.object) : [],
  }
}

/** Whether the API server would ask the gate about this change: it does when the object is selected as it was or as it will be. */
function isAsked(change: Change): change is Asked {
  const { resource, operation, object, oldObject } = change
  return webhooks.some(
    ({ phase, operations, targets, objectSelector }) =>
      phase === 'validating' &&
      operations.includes(operation) &&
      targets.some(({ kind, subresource }) => kind === resource?.kind && !subresource) &&
      [object, oldObject].some((each) => each && isSelected(each, objectSelector)),
  )
}

/** Our selectors ask only whether a label is there. */
function isSelected({ metadata }: KubeObject, selector: LabelSelector | undefined): boolean {
  const present = new Set(Object.keys(metadata.labels ?? {}))
  return (selector?.matchExpressions ?? []).every(({ key, operator }) => present.has(key) === (operator === 'Exists'))
}

function refusalOfSchema({ field, message }: SchemaProblem): Finding {
  return { rule: schemaRule, field, message: `${field}: ${message} (${schemaRule})`, mode: 'enforce' }
}
