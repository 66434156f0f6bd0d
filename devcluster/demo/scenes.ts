import { readFile } from 'node:fs/promises'
import {
  sandboxClaimKind,
  sandboxKind,
  sandboxSetKind,
  sandboxWarmPoolKind,
  type Sandbox,
  type SandboxClaim,
} from '../../src/api/kinds.ts'
import { poolHash } from '../../src/api/hash.ts'
import { annotations, conditionTypes, labels } from '../../src/api/vocabulary.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import type { Devcluster } from '../devcluster.ts'
import { waitUntil } from '../wait.ts'
import type { Screen } from './screen.ts'

const namespace = 'default'
const minute = { withinMs: 60_000 }

/** Everything the demo shows. Each scene throws at the first thing that does not happen. */
export interface Stage {
  readonly cluster: Devcluster
  readonly screen: Screen
  /** Facts for the summary at the end. */
  readonly summary: string[]
}

export async function fillPool(stage: Stage): Promise<void> {
  stage.screen.step('A template and a pool of five')
  await kubectl(stage, ['apply', '-f', 'pool.yaml'])
  const startedAt = performance.now()
  await poolIsReady(stage, 5)
  const tookMs = Math.round(performance.now() - startedAt)
  await kubectl(stage, ['get', 'swp,sandboxes'])
  stage.screen.result(`the pool has filled: 5 sandboxes ready in ${tookMs} ms`)
  stage.summary.push(`pool of 5 filled in ${tookMs} ms`)
}

export async function bindClaim(stage: Stage): Promise<void> {
  const { cluster, screen, summary } = stage
  screen.step('A claim takes a warm sandbox')
  const watching = await watchUntilReady(cluster, 'first')
  await kubectl(stage, ['apply', '-f', 'claim.yaml'])
  const { claim, tookMs } = await screen.wait('the claim is being bound', watching.ready)
  await kubectl(stage, ['get', 'sandboxclaim', 'first'])
  screen.result(`bound to ${claim.status?.sandbox?.name} ${tookMs} ms after it was admitted, as a watch saw it`)
  summary.push(`claim bound warm in ${tookMs} ms`)
}

export async function refill(stage: Stage): Promise<void> {
  stage.screen.step('The pool makes up for it')
  await poolIsReady(stage, 5)
  await kubectl(stage, ['get', 'swp', 'python'])
  stage.screen.result('five ready again; the claimed sandbox is not counted')
}

export async function refusals(stage: Stage): Promise<void> {
  const cases = [
    ['Forbidden env', 'claim-with-env.yaml', 'claim/env-policy'],
    ['A forged pool member', 'forged-member.yaml', 'sandbox/forged-pool'],
    ['A privileged template', 'privileged-template.yaml', 'template/pod-security'],
    ['A label that poses as the router', 'spoofed-router.yaml', 'claim/router-label'],
  ] as const
  for (const [title, file, rule] of cases) {
    stage.screen.step(`${title} is refused`)
    const { code, stderr } = await kubectl(stage, ['create', '-f', file], { mayFail: true })
    if (code === 0) throw new Error(`${file} was accepted, but ${rule} forbids it`)
    if (!stderr.includes(rule)) throw new Error(`${file} was refused for another reason than ${rule}`)
    stage.screen.result(`refused at admission by ${rule}`)
  }
  stage.summary.push(`${cases.length} violations refused at kubectl create`)
}

export async function rollingUpdate(stage: Stage): Promise<void> {
  const { cluster, screen, summary } = stage
  screen.step('A SandboxSet rolls to another image')
  await kubectl(stage, ['apply', '-f', 'set.yaml'])
  const get = () => cluster.client.get(sandboxSetKind, { namespace, name: 'web' })
  const isUpdated = async (revision?: string) => {
    const { status } = await get()
    return status?.updatedAvailableReplicas === 4 && status.updateRevision !== revision
  }
  await screen.wait(
    'the set is filling',
    waitUntil('set web', () => isUpdated(), minute),
  )
  const { status: before } = await get()
  const image = { template: { spec: { containers: [{ name: 'nginx', image: 'nginx:1.29-alpine' }] } } }
  await kubectl(stage, ['patch', 'sbs', 'web', '--type=merge', '-p', JSON.stringify({ spec: image })])
  await screen.wait(
    'the set is rolling',
    waitUntil('the new revision of set web', () => isUpdated(before?.updateRevision), minute),
  )
  await kubectl(stage, ['get', 'sbs', 'web', '-o', 'wide'])
  screen.result('every sandbox replaced, one at a time')
  summary.push('SandboxSet of 4 rolled to a new image')
}

export async function expiry(stage: Stage): Promise<void> {
  const { cluster, screen, summary } = stage
  screen.step('A claim reaches its end')
  const shutdownTime = new Date(Date.now() + 3_000).toISOString().replace(/\.\d+Z$/, 'Z')
  await kubectl(stage, ['apply', '-f', 'expiring-claim.yaml'], { replace: ['SHUTDOWN_TIME', shutdownTime] })
  await screen.wait(
    'the claim is living out its time',
    waitUntil('the end of claim short-lived', () => isGone(cluster, 'short-lived'), minute),
  )
  await kubectl(stage, ['get', 'sandboxclaims'])
  screen.result(`gone with its sandbox, at ${shutdownTime}`)
  summary.push('claim expired and deleted on time')
}

/** Judged by the stock itself: right after a claim the pool's status may still be that of before. */
async function poolIsReady({ cluster, screen }: Stage, count: number): Promise<void> {
  const stock = { namespace, labelSelector: `${labels.warmPool}=${poolHash('SandboxWarmPool', 'python')}` }
  const isReady = async () => {
    const { items } = await cluster.client.list(sandboxKind, stock)
    const ready = items.filter((sandbox) => isTrue(sandbox, conditionTypes.ready))
    const pool = await cluster.client.get(sandboxWarmPoolKind, { namespace, name: 'python' })
    return items.length === count && ready.length === count && pool.status?.readyReplicas === count
  }
  await screen.wait('the pool is filling', waitUntil('pool python', isReady, minute))
}

/** Follows the claims by a watch, as clients do. Time counts from the stamp that the gate put on the claim at its admission. */
async function watchUntilReady({ client }: Devcluster, name: string) {
  const stop = new AbortController()
  const { metadata } = await client.list(sandboxClaimKind, { namespace })
  const events = await client.watch(sandboxClaimKind, {
    namespace,
    resourceVersion: metadata.resourceVersion ?? '',
    signal: stop.signal,
  })
  const follow = async (): Promise<{ claim: SandboxClaim; tookMs: number }> => {
    for await (const event of events) {
      if (event.type === 'BOOKMARK' || event.type === 'ERROR' || event.object.metadata.name !== name) continue
      if (!isTrue(event.object, conditionTypes.ready)) continue
      const seenAt = Date.now()
      stop.abort()
      const admittedAt = Date.parse(event.object.metadata.annotations?.[annotations.webhookFirstObservedAt] ?? '')
      return { claim: event.object, tookMs: seenAt - admittedAt }
    }
    throw new Error(`the watch ended before claim ${name} was ready`)
  }
  return { ready: follow() }
}

function isTrue(object: SandboxClaim | Sandbox, type: string): boolean {
  return findCondition(object.status?.conditions, type)?.status === 'True'
}

async function isGone({ client }: Devcluster, name: string): Promise<boolean> {
  try {
    await client.get(sandboxClaimKind, { namespace, name })
    return false
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return true
    throw error
  }
}

/** Runs kubectl as a user would, with the demo's files, and shows both the command and what it prints. */
async function kubectl(
  { cluster, screen }: Stage,
  args: readonly string[],
  options: { mayFail?: boolean; replace?: readonly [string, string] } = {},
) {
  screen.command(`kubectl ${args.map((arg) => (/[\s{]/.test(arg) ? `'${arg}'` : arg)).join(' ')}`)
  const file = args.find((arg) => arg.endsWith('.yaml'))
  const text = file && (await readFile(new URL(file, import.meta.url), 'utf8'))
  const input = options.replace ? text?.replace(...options.replace) : text
  const given = args.map((arg) => (arg === file ? '-' : arg))
  const result = await cluster.controlPlane.kubectl(given, input === undefined ? {} : { input })
  screen.output(result.stdout + result.stderr)
  if (result.code !== 0 && !options.mayFail) throw new Error(`kubectl ${args[0]} ended with exit code ${result.code}`)
  return result
}
