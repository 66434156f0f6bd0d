// `node devcluster/main.ts` starts a control plane with simulated nodes, says how to reach it, and stays until it is
// told to stop. Progress goes to standard error; standard output holds one line, ready for a shell to evaluate.
import { parseArgs } from 'node:util'
import { createLogger } from '../src/telemetry/logger.ts'
import { findControlPlane } from './binaries.ts'
import { startDevcluster } from './devcluster.ts'
import { DevclusterError } from './error.ts'

const usage = `Usage: node devcluster/main.ts [--nodes <count>] [--audit] [--prepare]

Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, with simulated nodes.

  --prepare        only find the binaries, or build them, which takes about five minutes
  --nodes <count>  how many nodes to simulate (default 2)
  --audit          write an audit log
  --help
`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '2' },
      audit: { type: 'boolean' },
      prepare: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) {
    process.stdout.write(usage)
    return
  }
  const nodeCount = Number(values.nodes)
  if (!Number.isInteger(nodeCount) || nodeCount < 0) {
    throw new TypeError(`--nodes ${values.nodes}: give a whole number, such as 2`)
  }

  const log = createLogger({ level: 'info', pretty: process.stderr.isTTY })
  const binaries = await findControlPlane((line) => process.stderr.write(`${line}\n`))
  if (values.prepare) return

  // From here on Ctrl-C is an orderly stop. A build before this line is simply interrupted.
  const told = Promise.withResolvers<undefined>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => told.resolve(undefined))

  const cluster = await startDevcluster({ binaries, log, nodeCount, audit: values.audit ?? false })
  process.stdout.write(`export KUBECONFIG=${cluster.controlPlane.kubeconfig}\n`)
  const failure = await Promise.race([told.promise, cluster.controlPlane.failed])
  await cluster.stop()
  if (failure) throw failure
}

try {
  await main()
} catch (error) {
  const isExpected = error instanceof DevclusterError || error instanceof TypeError
  process.stderr.write(`${isExpected ? error.message : String(error instanceof Error ? error.stack : error)}\n`)
  process.exitCode = 1
}
