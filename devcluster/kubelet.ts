import type { Logger } from 'pino'
import { type Pod, pods } from '../src/api/core.ts'
import type { KubeClient } from '../src/kube/client.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { keyOf, refKey } from '../src/kube/object.ts'
import type { Clock } from '../src/runtime/clock.ts'
import { type Outcome, runController } from '../src/runtime/controller.ts'
import type { Informer } from '../src/runtime/informer.ts'
import { createReflector } from '../src/runtime/reflector.ts'
import { WorkQueue } from '../src/runtime/work-queue.ts'
import { type Behaviour, behaviourAnnotation, parseBehaviour, type PodOutcome, runAtOnce } from './behaviour.ts'
import { statusOf } from './pod-status.ts'

export interface KubeletOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  /** For Pods without the annotation; default: run at once. */
  readonly behaviour?: Behaviour
  /** Node name → its address. Pods on other nodes are left alone. */
  readonly hostIps: ReadonlyMap<string, string>
}

/** What the kubelet remembers of a Pod, so that each step is one write however late the watch is. */
interface Memory {
  readonly podIp: string
  readonly placedAt: number
  written: PodOutcome
  /** When its deletion was first seen. */
  stoppingAt: number | undefined
  isFinished: boolean
}

/** Writes under way at a time: enough that Pods become ready as fast as the API server takes it. */
const concurrency = 32

const done: Outcome = { kind: 'done' }

/** Plays kubelet for every simulated node at once. */
export class Kubelet {
  readonly #options: KubeletOptions
  readonly #queue: WorkQueue
  readonly #informer: Informer<Pod>
  readonly #memories = new Map<string, Memory>()
  /** By `namespace/name`: what {@link setBehaviour} asked for. */
  readonly #orders = new Map<string, Behaviour>()
  #addresses = 0

  constructor(options: KubeletOptions) {
    const { client, clock, log } = options
    this.#options = options
    this.#queue = new WorkQueue({ clock })
    this.#informer = createReflector({ client, clock, log, resource: pods, fieldSelector: 'spec.nodeName!=' })
    this.#informer.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#forget(object)
      else this.#queue.add(keyOf(object))
    })
  }

  /** Resolves once every Pod is known. */
  get synced(): Promise<void> {
    return this.#informer.synced
  }

  /** From now on this Pod, there already or not, behaves like this, whatever its annotation says. Ends with the Pod. */
  setBehaviour(namespace: string, name: string, behaviour: Partial<Behaviour>): void {
    const key = refKey({ namespace, name })
    this.#orders.set(key, { ...(this.#options.behaviour ?? runAtOnce), ...behaviour })
    this.#queue.add(key)
  }

  /** Follows the Pods until `signal` ends. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options
    const reconcile = (key: string): Promise<Outcome> => this.#reconcile(key)
    await Promise.all([
      this.#informer.run(signal),
      runController({ name: 'kubelet', queue: this.#queue, reconcile, concurrency, clock, log }, signal),
    ])
    this.#queue.clearDelayed()
  }

  async #reconcile(key: string): Promise<Outcome> {
    const pod = this.#informer.store.get(key)
    const hostIp = this.#options.hostIps.get(pod?.spec?.nodeName ?? '')
    if (!pod || hostIp === undefined) return done
    const memory = this.#remember(pod)
    const behaviour = this.#behaviourOf(key, pod)
    return pod.metadata.deletionTimestamp === undefined
      ? this.#advance(pod, memory, behaviour, hostIp)
      : this.#finish(pod, memory, behaviour)
  }

  /** Brings the Pod to the outcome that its behaviour wants, in one write. */
  async #advance(pod: Pod, memory: Memory, behaviour: Behaviour, hostIp: string): Promise<Outcome> {
    const { client, clock } = this.#options
    const { outcome } = behaviour
    const isOver = memory.written === 'fail' || memory.written === 'succeed'
    if (outcome === 'pending' || outcome === memory.written || isOver) return done
    const wait = memory.placedAt + behaviour.startAfterMs - clock.monotonic()
    if (wait > 0) return { kind: 'recheck', afterMs: wait, because: 'the Pod takes its time to start' }

    const status = statusOf(pod, outcome, { podIp: memory.podIp, hostIp, now: clock.now() })
    await client.patch(pods, refOf(pod), { status }, { type: 'merge', subresource: 'status' }).catch(ignore('NotFound'))
    memory.written = outcome
    return done
  }

  /** What a kubelet does once the containers have ended: delete without grace. */
  async #finish(pod: Pod, memory: Memory, { stopAfterMs }: Behaviour): Promise<Outcome> {
    const { client, clock } = this.#options
    if (memory.isFinished) return done
    // The deletion timestamp lies a grace period after the request, so it does not say when that was.
    memory.stoppingAt ??= clock.monotonic()
    const wait = memory.stoppingAt + stopAfterMs - clock.monotonic()
    if (wait > 0) return { kind: 'recheck', afterMs: wait, because: 'the Pod takes its time to stop' }

    const preconditions = pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }
    await client
      .delete(pods, refOf(pod), { ...preconditions, gracePeriodSeconds: 0 })
      .catch(ignore('NotFound', 'Conflict'))
    // A finalizer may keep the Pod; the kubelet's part is over.
    memory.isFinished = true
    return done
  }

  #behaviourOf(key: string, pod: Pod): Behaviour {
    const base = this.#orders.get(key) ?? this.#options.behaviour ?? runAtOnce
    const text = pod.metadata.annotations?.[behaviourAnnotation]
    if (text === undefined || this.#orders.has(key)) return base
    try {
      return parseBehaviour(text, base)
    } catch (err) {
      this.#options.log.error({ pod: key, err }, 'a Pod asks for an unknown behaviour and stays pending')
      return { ...base, outcome: 'pending' }
    }
  }

  #remember(pod: Pod): Memory {
    const uid = pod.metadata.uid ?? ''
    const known = this.#memories.get(uid)
    if (known) return known
    const memory: Memory = {
      podIp: pod.status?.podIP ?? this.#nextAddress(),
      placedAt: this.#options.clock.monotonic(),
      written: outcomeOf(pod),
      stoppingAt: undefined,
      isFinished: false,
    }
    this.#memories.set(uid, memory)
    return memory
  }

  #forget(pod: Pod): void {
    this.#memories.delete(pod.metadata.uid ?? '')
    this.#orders.delete(keyOf(pod))
  }

  /** Addresses from 10.128.0.0/9, never given twice: eight million Pods fit into one run. */
  #nextAddress(): string {
    this.#addresses += 1
    const n = this.#addresses
    return `10.${128 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`
  }
}

/** Takes over Pods that an earlier run has served. */
function outcomeOf(pod: Pod): PodOutcome {
  switch (pod.status?.phase) {
    case 'Running':
      return 'run'
    case 'Failed':
      return 'fail'
    case 'Succeeded':
      return 'succeed'
    default:
      return 'pending'
  }
}

function refOf(pod: Pod): { namespace: string; name: string } {
  return { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name ?? '' }
}

/** The object went its own way meanwhile, which is what the request was for. */
function ignore(...codes: ('NotFound' | 'Conflict' | 'AlreadyExists')[]): (error: unknown) => void {
  return (error) => {
    if (!isKubeError(error, ...codes)) throw error
  }
}
