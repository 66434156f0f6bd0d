import { readFile } from 'node:fs/promises'
import type { Devcluster } from '../../devcluster/devcluster.ts'
import type { Product } from '../../devcluster/product.ts'
import { KubeError } from '../kube/errors.ts'
import { systemClock } from '../runtime/clock.ts'
import { createLogger } from '../telemetry/logger.ts'
import { CommandError, exitCodes, parseFlags, type Command } from './command.ts'
import { install } from './manifests.ts'
import { readConfiguration } from './status-source.ts'
import { watchStatus } from './status-watch.ts'
import { stopSignals } from './stop-signals.ts'

const help = `Usage: sandgate dev [FLAGS]

Starts a Kubernetes control plane on this machine, with simulated nodes, installs sandgate on it from the shipped
manifests, with a template and a pool of five, prints how to reach it, and follows its status. Ctrl-C stops and removes
everything.

  --nodes N     how many nodes to simulate (default 2)
  --empty       no template and no pool

It needs Debian 12, where it builds the control plane once, in about five minutes; or KUBEBUILDER_ASSETS.

Examples:
  sandgate dev
  KUBEBUILDER_ASSETS=/usr/local/kubebuilder/bin sandgate dev --nodes 5
`

export const devCommand: Command = {
  name: 'dev',
  summary: 'Run a development cluster with sandgate on this machine.',
  help,
  run: dev,
}

async function dev(args: readonly string[]): Promise<number> {
  const flags = parseFlags('dev', args, {
    nodes: { type: 'string', default: '2' },
    empty: { type: 'boolean', default: false },
  })
  if (!/^[1-9]\d*$/.test(flags.nodes)) {
    const message = `--nodes takes a number from 1, not '${flags.nodes}'. See 'sandgate dev --help'.`
    throw new CommandError(message, exitCodes.usage)
  }
  const { startDevcluster, installProduct, findControlPlane, DevclusterError } = await loadDevcluster()
  const say = (line: string) => void process.stderr.write(`${line}\n`)
  try {
    const binaries = await findControlPlane(say)
    const stop = stopSignals()
    say('starting etcd, the API server, the controller manager, the scheduler and simulated nodes')
    const log = createLogger({ level: 'error' })
    const cluster = await startDevcluster({ binaries, log, nodeCount: Number(flags.nodes) })
    try {
      if (stop.aborted) return exitCodes.ok
      say('installing sandgate')
      const product = await installProduct({ controlPlane: cluster.controlPlane })
      if (!flags.empty) await applyPool(cluster)
      if (stop.aborted) return exitCodes.ok
      const failure = await Promise.race([
        follow(cluster, stop),
        cluster.controlPlane.failed,
        keepRunning(product, say, stop),
      ])
      if (failure && !stop.aborted) throw failure
    } finally {
      await cluster.stop()
    }
    return exitCodes.ok
  } catch (error) {
    if (!(error instanceof DevclusterError || error instanceof KubeError)) throw error
    throw new CommandError(error.message, undefined, error)
  }
}

/** Starts sandgate again when it ends, as a Deployment would; ends with why it could not. */
async function keepRunning(product: Product, say: (line: string) => void, stop: AbortSignal): Promise<Error> {
  for (;;) {
    const how = await product.process.ended
    if (stop.aborted) return new Error('stopped')
    say(`sandgate ended (${how}); starting it again`)
    try {
      await product.start()
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
}

/** For this command only: nothing that serves a cluster has anything to do with it. */
async function loadDevcluster() {
  return {
    ...(await import('../../devcluster/binaries.ts')),
    ...(await import('../../devcluster/devcluster.ts')),
    ...(await import('../../devcluster/error.ts')),
    ...(await import('../../devcluster/product.ts')),
  }
}

async function applyPool({ controlPlane }: Devcluster): Promise<void> {
  const input = await readFile(new URL('../../devcluster/demo/pool.yaml', import.meta.url), 'utf8')
  const { code, stderr } = await controlPlane.kubectl(['apply', '-f', '-'], { input })
  if (code !== 0) throw new CommandError(`kubectl apply: ${stderr.trim()}`)
}

async function follow({ controlPlane, client }: Devcluster, stop: AbortSignal): Promise<undefined> {
  const config = await readConfiguration(client, install.namespace)
  await watchStatus(
    {
      client,
      scope: {},
      config,
      clock: systemClock,
      format: 'table',
      out: process.stdout,
      header: `export KUBECONFIG=${controlPlane.kubeconfig}`,
    },
    stop,
  )
  return undefined
}
