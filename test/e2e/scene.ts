import { findControlPlane } from '../../devcluster/binaries.ts'
import { startDevcluster, type Devcluster, type DevclusterOptions } from '../../devcluster/devcluster.ts'
import { installProduct, type Product } from '../../devcluster/product.ts'
import { waitUntil } from '../../devcluster/wait.ts'
import { createLogger } from '../../src/telemetry/logger.ts'

/** The real thing for one test file: a control plane, simulated nodes, and sandgate as its manifests install it. */
export interface Scene extends Devcluster {
  readonly product: Product
  /** kubectl as an administrator; throws with what it printed when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>
  /** kubectl that must fail; resolves with what it printed on standard error. */
  kubectlRefused(args: readonly string[], input?: string): Promise<string>
  /** Polls until `holds` does, for a minute: the garbage collector alone may take half of that to learn of new kinds. */
  until(what: string, holds: () => Promise<boolean>): Promise<void>
}

interface TearDown {
  teardown(stop: () => Promise<void>): void
}

export async function startCluster(t: TearDown, options: Partial<DevclusterOptions> = {}): Promise<Devcluster> {
  const binaries = await findControlPlane(() => undefined)
  const cluster = await startDevcluster({ binaries, log: createLogger({ level: 'error' }), audit: true, ...options })
  t.teardown(() => cluster.stop())
  return cluster
}

export async function startScene(
  t: TearDown,
  options: Partial<DevclusterOptions> & { readonly flags?: readonly string[] } = {},
): Promise<Scene> {
  const { flags = [], ...rest } = options
  const cluster = await startCluster(t, rest)
  const product = await installProduct({ controlPlane: cluster.controlPlane, flags })
  const run = cluster.controlPlane.kubectl
  return {
    ...cluster,
    product,
    async kubectl(args, input) {
      const { code, stdout, stderr } = await run(args, input === undefined ? {} : { input })
      if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`)
      return stdout
    },
    async kubectlRefused(args, input) {
      const { code, stdout, stderr } = await run(args, input === undefined ? {} : { input })
      if (code === 0) throw new Error(`kubectl ${args.join(' ')} was accepted: ${stdout}`)
      return stderr
    },
    until: (what, holds) => waitUntil(what, holds, { withinMs: 60_000 }),
  }
}
