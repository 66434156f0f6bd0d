import { default as fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Clock } from '../src/runtime/clock.ts'
import type { Metrics } from '../src/telemetry/metrics.ts'
import { goDurationMs, startDeadline, type Deadline } from './deadline.ts'
import type { Mutate } from './mutate.ts'
import { parseJson } from './parse-json.ts'
import { formatReview, parseReview, type AdmissionRequest, type Verdict } from './review.ts'
import { webhooks, type Phase, type Target } from './table.ts'
import { refusedObject } from './verdict.ts'
import type { Validate } from './validate.ts'

export interface AppDependencies {
  readonly validate: Validate
  readonly mutate: Mutate
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: Pick<Metrics, 'admissionDuration'>
  /** For a whole answer, lookups included. */
  readonly budgetMs?: number
}

/** A review holds object and oldObject, each up to the API server's limit of 3 MiB, and escapes. */
const bodyLimitBytes = 8 * 1024 * 1024
const defaultBudgetMs = 1000

/**
 * The gate's routes, one for each path in the table of webhooks. It does not listen.
 *
 * Every answer is HTTP 200 with an AdmissionReview: anything else is judged by failurePolicy, and under Ignore that is a
 * way around the policy. No route has a schema, since Fastify's would coerce, fill in and strip what is to be judged.
 */
export function buildApp(dependencies: AppDependencies): FastifyInstance {
  const { log } = dependencies
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    logger: false,
    exposeHeadRoutes: false,
    // A path that cannot be decoded fails before there is a route.
    frameworkErrors: (error, _request, reply) => void refuse(reply, 400, error.message),
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    const parsed = parseJson(body)
    done(null, parsed.kind === 'value' ? parsed.value : undefined)
  })
  app.setNotFoundHandler((_request, reply) => refuse(reply, 400, 'there is no webhook at this path'))
  app.setErrorHandler<{ code?: string }>((error, _request, reply) => {
    if (error.code?.startsWith('FST_ERR_CTP_')) return refuse(reply, 400, 'the request has no body that can be read')
    log.error({ error }, 'an admission request failed outside its handler')
    return refuse(reply, 500, 'sandgate failed to answer; its log says why')
  })
  for (const { path, phase, targets } of routes()) {
    app.post(path, (request, reply) => answer(dependencies, phase, targets, request, reply))
  }
  return app
}

interface Route {
  readonly path: string
  readonly phase: Phase
  readonly targets: readonly Target[]
}

/** Webhooks that share a path differ in operations and selectors only, so one handler serves them. */
function routes(): Route[] {
  return [...Map.groupBy(webhooks, ({ path }) => path)].map(([path, rows]) => ({
    path,
    phase: rows[0]?.phase ?? 'validating',
    targets: rows.flatMap(({ targets }) => targets),
  }))
}

async function answer(
  dependencies: AppDependencies,
  phase: Phase,
  targets: readonly Target[],
  { body, query, routeOptions }: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { clock, metrics, budgetMs = defaultBudgetMs } = dependencies
  const startedAt = clock.monotonic()
  const parsed = parseReview(body, targets)
  if (parsed.kind === 'malformed') return refuse(reply, 400, parsed.because, parsed.uid)

  const { request } = parsed
  const timeoutMs = goDurationMs((query as { timeout?: unknown } | undefined)?.timeout)
  const verdict = await judge(dependencies, phase, request, startDeadline(clock, budgetMs, timeoutMs))
  metrics?.admissionDuration.observe(
    { webhook: (routeOptions.url ?? '').slice(1), operation: request.operation, verdict: verdict.kind },
    (clock.monotonic() - startedAt) / 1000,
  )
  return send(reply, request.uid, verdict)
}

async function judge(
  { validate, mutate, log }: AppDependencies,
  phase: Phase,
  request: AdmissionRequest,
  deadline: Deadline,
): Promise<Verdict> {
  try {
    return phase === 'mutating' ? mutate(request) : await validate(request, deadline)
  } catch (error) {
    const { target, namespace, name, operation } = request
    log.error({ error, kind: target.kind, namespace, name, operation }, 'an admission request failed')
    const message = 'sandgate failed to judge this change; its log says why'
    return { kind: 'denied', code: 500, message, of: refusedObject(request) }
  }
}

function refuse(reply: FastifyReply, code: 400 | 500, message: string, uid = ''): FastifyReply {
  return send(reply, uid, { kind: 'denied', code, message })
}

function send(reply: FastifyReply, uid: string, verdict: Verdict): FastifyReply {
  return reply.code(200).type('application/json').send(formatReview(uid, verdict))
}
