import { pino } from 'pino'
import { kinds } from '../../src/api/kinds.ts'
import { createValidators } from '../../src/api/validators.ts'
import { defaultConfig, type Config } from '../../src/config/schema.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import { actorOf } from '../../src/policy/actor.ts'
import { evaluate } from '../../src/policy/evaluate.ts'
import { mutate } from '../../src/policy/mutations.ts'
import type { Facts } from '../../src/policy/rule.ts'
import { ManualClock } from '../../src/runtime/manual-clock.ts'
import { buildApp } from '../../webhooks/app.ts'
import type { FactSource, Surroundings } from '../../webhooks/facts.ts'
import { createMutate } from '../../webhooks/mutate.ts'
import { webhooks } from '../../webhooks/table.ts'
import { createValidate, type Judgement, type ValidateDependencies } from '../../webhooks/validate.ts'

export const claim = (changes: Record<string, unknown> = {}): KubeObject & { spec: Record<string, unknown> } => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxClaim',
  metadata: { name: 'c', namespace: 'ns' },
  spec: { warmPoolRef: { name: 'pool' } },
  ...changes,
})

export const template = (changes: Record<string, unknown> = {}): KubeObject & { spec: Record<string, unknown> } => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxTemplate',
  metadata: { name: 'python', namespace: 'ns' },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python' }] } } },
  ...changes,
})

/** An AdmissionReview as the API server sends it, for a resource given as `plural` or `plural/subresource`. */
export function review(what: string, request: Record<string, unknown>): Record<string, unknown> {
  const [plural = '', subResource] = what.split('/')
  const target = webhooks.flatMap(({ targets }) => targets).find(({ resource }) => resource.plural === plural)
  const { group = '', version = 'v1', kind = 'Unknown' } = target?.resource ?? {}
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u-1',
      kind: { group, version, kind },
      resource: { group, version, resource: plural },
      ...(subResource && { subResource }),
      operation: 'CREATE',
      namespace: 'ns',
      name: 'c',
      userInfo: { username: 'alice', groups: ['system:authenticated'] },
      dryRun: false,
      ...request,
    },
  }
}

export interface Answer {
  uid: string
  allowed: boolean
  status?: {
    code: number
    reason: string
    message: string
    details?: { name?: string; kind?: string; causes?: { field?: string; message?: string; reason?: string }[] }
  }
  patchType?: string
  patch?: string
  warnings?: string[]
  auditAnnotations?: Record<string, string>
}

/** Facts that are simply there. */
export function fixedFacts(facts: Facts, rest: Partial<Surroundings> = {}): FactSource & { created: string[] } {
  const surroundings = { facts, namespaceLabels: {}, mayBeOld: false, ...rest }
  const created: string[] = []
  return {
    created,
    gather: async () => surroundings,
    confirm: async () => surroundings,
    noteClaimCreated: (username) => void created.push(username),
  }
}

const validators = createValidators(kinds)
/** The real rules. */
export const realJudgement: Judgement = {
  evaluate,
  actorOf,
  problemsOf(kind, object) {
    const own = kinds.find((each) => each.kind === kind)
    return own ? validators.problemsOf(own, object) : []
  },
}

export interface GateOptions extends Partial<Omit<ValidateDependencies, 'clock'>> {
  readonly mutate?: typeof mutate
  readonly budgetMs?: number
}

/** A gate with the real rules and no facts, except for what a test puts in their place. */
export function buildGate({ mutate: ownMutate = mutate, budgetMs, ...options }: GateOptions = {}) {
  const clock = new ManualClock()
  const dependencies = {
    judgement: realJudgement,
    facts: fixedFacts({}),
    config: (): Config => defaultConfig,
    clock,
    serverClockOffsetMs: () => 0,
    log: pino({ level: 'silent' }),
    ...options,
  }
  const { log } = dependencies
  const app = buildApp({
    validate: createValidate(dependencies),
    mutate: createMutate({ ...dependencies, mutate: ownMutate }),
    clock,
    log,
    ...(budgetMs !== undefined && { budgetMs }),
  })
  return {
    app,
    clock,
    /** Sends a review and returns the response in the answer, which must be HTTP 200 and well-formed. */
    async ask(path: string, body: unknown): Promise<Answer> {
      const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
      const answer = await app.inject({
        method: 'POST',
        url: path,
        headers: { 'content-type': 'application/json' },
        payload,
      })
      return responseIn(answer)
    },
  }
}

/** The response inside an answer; throws on anything that the API server would not take for one. */
export function responseIn(answer: { statusCode: number; headers: Record<string, unknown>; body: string }): Answer {
  if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode}: ${answer.body}`)
  if (!String(answer.headers['content-type']).startsWith('application/json')) throw new Error('the answer is not JSON')
  const { apiVersion, kind, response } = JSON.parse(answer.body) as Record<string, unknown>
  if (apiVersion !== 'admission.k8s.io/v1' || kind !== 'AdmissionReview') throw new Error('not an AdmissionReview')
  const { uid, allowed, status, patch, patchType } = response as Answer
  if (typeof uid !== 'string' || typeof allowed !== 'boolean') throw new Error('the response is not well-formed')
  if (allowed === (status !== undefined)) throw new Error('a refusal has a status, and only a refusal')
  if ((patch === undefined) !== (patchType === undefined)) throw new Error('patch and patchType go together')
  return response as Answer
}
