import type { AuditedRequest } from '../../devcluster/audit.ts'
import { atOnce, createClaimant } from '../cluster/claims.ts'
import { createPool, createTemplate, followStock } from '../cluster/pool.ts'
import { untilQuiet } from '../cluster/quiet.ts'
import { startStage } from '../cluster/stage.ts'
import type { Scenario } from '../scenario.ts'

const pool = 'python'
const writeVerbs = new Set(['create', 'update', 'patch', 'delete'])

/** Counted and not timed, with the API server's audit log on, which costs it a write per request. */
export const writes: Scenario = {
  name: 'writes',
  title: 'requests of sandgate, as the API server counts them',
  runs: 2,
  figures: [
    { id: 'adoption', what: 'writes of the claim controller, per warm claim', unit: '', toReach: { atMost: 2 } },
    { id: 'reads', what: 'reads, per warm claim', unit: '', toReach: { atMost: 0 } },
    {
      id: 'bound',
      what: 'writes of the Sandbox controller to the bound one, per warm claim',
      unit: '',
      toReach: { atMost: 2 },
    },
    { id: 'events', what: 'events, per warm claim', unit: '' },
    { id: 'fillWrites', what: 'writes to fill a pool, per sandbox', unit: '' },
    { id: 'fillStatus', what: 'of these to sandboxes/status', unit: '' },
  ],
  async prepare(context) {
    const stage = await startStage(context, { audit: true })
    const { controlPlane, product } = stage
    const stock = await followStock(stage)
    const claimant = await createClaimant(stage)
    const count = context.quick ? 50 : 300
    await createTemplate(stage)
    await createPool(stage, pool, count)
    await stock.whenReady(pool, count)
    await untilQuiet(stage)
    const toFill = (await controlPlane.requestsOf(product.username)).filter(isAboutSandboxes)

    return {
      async measure() {
        const since = Date.now()
        const before = new Set(stock.ready(pool))
        const timings = await claimant.claim(pool, count, atOnce)
        await stock.whenReady(pool, count)
        await untilQuiet(stage)
        const requests = await controlPlane.requestsOf(product.username, since)
        // The refill makes others of the same kinds, under names of their own.
        const toBound = requests.filter(({ name }) => name !== undefined && before.has(name))
        const claims = new Set(timings.map(({ name }) => name))
        const ofClaims = requests.filter(({ name }) => name !== undefined && claims.has(name)).filter(isWrite)
        const adoptions = toBound.filter(({ verb, resource }) => verb === 'patch' && resource === 'sandboxes')
        const events = requests.filter(({ resource }) => resource === 'events')
        const reads = requests.filter(({ verb, resource }) => ['get', 'list'].includes(verb) && resource !== 'leases')
        await claimant.clear(stock)
        return {
          adoption: (adoptions.length + ofClaims.length) / count,
          reads: reads.length / count,
          bound: (toBound.filter(isWrite).length - adoptions.length) / count,
          events: events.length / count,
          fillWrites: toFill.length / count,
          fillStatus: toFill.filter(({ resource }) => resource === 'sandboxes/status').length / count,
        }
      },
      stop: () => stage.stop(),
    }
  },
}

function isWrite({ verb }: AuditedRequest): boolean {
  return writeVerbs.has(verb)
}

function isAboutSandboxes(request: AuditedRequest): boolean {
  return isWrite(request) && ['sandboxes', 'sandboxes/status', 'pods', 'services'].includes(request.resource)
}
