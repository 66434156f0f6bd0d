import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fastify, type FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'

/** One condition of readiness: undefined when it holds, else what is missing. */
export interface ReadinessCheck {
  readonly name: string
  readonly problem: () => string | undefined
}

export interface ProbeOptions {
  readonly registry: Registry
  readonly checks: readonly ReadinessCheck[]
}

/** An event loop that was held up this long answers no admission review in time, so the process is not alive. */
const stuckMs = 5_000

/**
 * The plain HTTP endpoints: `/healthz` (the event loop turns), `/readyz` (every check holds; `?verbose` lists them) and
 * `/metrics`. It does not listen.
 */
export function buildProbes({ registry, checks }: ProbeOptions): FastifyInstance {
  const app = fastify({ logger: false })
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  app.addHook('onClose', async () => void delay.disable())

  app.get('/healthz', async (_request, reply) => {
    const heldUpMs = delay.max / 1e6
    delay.reset()
    if (heldUpMs > stuckMs) return reply.code(500).send(`the event loop was held up for ${Math.round(heldUpMs)} ms\n`)
    return reply.send('ok\n')
  })
  app.get<{ Querystring: { verbose?: string } }>('/readyz', async (request, reply) => {
    const results = checks.map(({ name, problem }) => ({ name, problem: problem() }))
    const isReady = results.every((result) => result.problem === undefined)
    const shown = results.filter(({ problem }) => problem !== undefined || request.query.verbose !== undefined)
    const lines = shown.map(({ name, problem }) =>
      problem === undefined ? `[+] ${name} ok` : `[-] ${name}: ${problem}`,
    )
    return reply.code(isReady ? 200 : 503).send([...lines, isReady ? 'ready' : 'not ready', ''].join('\n'))
  })
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  return app
}
