import { cpuDuring } from '../process-usage.ts'
import type { Stage } from './stage.ts'

const lookMs = 500
/** Idle, but for leases, heartbeats and watches that are renewed. */
const quietShare = 0.15
const patienceMs = 60_000

/** Waits until what went before has worked its way through the API server, the product and the garbage collector. */
export async function untilQuiet({ controlPlane, product }: Stage): Promise<void> {
  const giveUpAt = performance.now() + patienceMs
  while (performance.now() < giveUpAt) {
    const before = await controlPlane.apiServer.cpuMs()
    const ofProduct = await cpuDuring(product.process.pid, () => pause(lookMs))
    const ofApiServer = (await controlPlane.apiServer.cpuMs()) - before
    if (Math.max(ofProduct, ofApiServer) / lookMs < quietShare) return
  }
}

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}
