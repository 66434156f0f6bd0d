import type {
  DeleteOptions,
  KubeClient,
  ListOptions,
  PatchOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './client.ts'
import type { ClusterAccess } from './config.ts'
import { KubeError } from './errors.ts'
import { apiVersionOf, refKey } from './object.ts'
import type { KubeObject, ObjectList, ObjectRef, Resource } from './object.ts'
import { requestPath } from './request-path.ts'
import { errorOfFailure } from './status-error.ts'
import { Transport } from './transport.ts'
import type { Call, OpenWatch, TransportOptions, Verb } from './transport.ts'
import { watchEvents } from './watch-stream.ts'

export type { RequestReport } from './transport.ts'
export type KubeClientOptions = TransportOptions

const fieldManager = 'sandgate'

/** Longer than any healthy read, shorter than the 60 s after which the API server gives up itself. */
const readTimeoutMs = 30_000
const listTimeoutMs = 60_000
/** Also asked of the server. Three seconds fit between a leader's last renewal and the next leader's first write. */
const writeTimeoutMs = 3_000

const methods = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
} as const

const patchContentTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

/**
 * The API of one cluster over kept-alive HTTP/1.1 connections.
 *
 * A request answered with 401 is repeated once with credentials read anew; nothing else is repeated here. A request
 * that its caller's signal ended rejects with `Aborted`, whether or not it had been sent. A watch whose connection is
 * lost throws `OutcomeUnknown`, like any read.
 */
export function createKubeClient(access: ClusterAccess, options: KubeClientOptions = {}): KubeClient {
  return new RestClient(new Transport(access, options))
}

class RestClient implements KubeClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: { signal?: AbortSignal } = {}) {
    const rest = { timeoutMs: readTimeoutMs, signal: options.signal, isWrite: false }
    return await this.#json<T>(describeCall('get', resource, ref, {}, rest))
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const { namespace, signal, ...query } = options
    const rest = { timeoutMs: listTimeoutMs, signal, isWrite: false }
    const list = await this.#json<ObjectList<T>>(describeCall('list', resource, { namespace }, query, rest))
    // A list of a Go server that found nothing may say null.
    const items = list.items ?? []
    // Built-in kinds leave these out of the items of a list, though not out of the events of a watch.
    const apiVersion = apiVersionOf(resource)
    for (const item of items) {
      item.apiVersion ??= apiVersion
      item.kind ??= resource.kind
    }
    return { ...list, items }
  }

  async watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions) {
    const { namespace, signal, ...query } = options
    const parameters = { ...query, watch: true, allowWatchBookmarks: true }
    const rest = { timeoutMs: readTimeoutMs, signal, isWrite: false }
    const call = describeCall('watch', resource, { namespace }, parameters, rest)
    return eventsOf<T>(call, await this.#transport.open(call))
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const { namespace, name, generateName } = object.metadata
    const target = { namespace, shownName: name ?? `${generateName ?? ''}*` }
    return await this.#write<T>('create', resource, target, typed(resource, object), options)
  }

  async replace<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const { namespace, name = '' } = object.metadata
    return await this.#write<T>('update', resource, { namespace, name }, typed(resource, object), options)
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: unknown, options: PatchOptions) {
    return await this.#write<T>('patch', resource, ref, patch, options)
  }

  async delete(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion, propagation, gracePeriodSeconds, signal } = options
    const timeoutMs = options.timeoutMs ?? writeTimeoutMs
    const call = describeCall('delete', resource, ref, timeoutQuery(timeoutMs), { timeoutMs, signal, isWrite: true })
    // JSON leaves out what is undefined.
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: propagation,
      gracePeriodSeconds,
      preconditions: uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion },
    }
    await this.#transport.send({ ...call, contentType: 'application/json', body: JSON.stringify(body) })
  }

  serverClockOffsetMs(): number {
    return this.#transport.serverClockOffsetMs()
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  async #write<T>(
    verb: Verb,
    resource: Resource,
    target: CallTarget,
    body: unknown,
    options: WriteOptions | PatchOptions,
  ): Promise<T> {
    const timeoutMs = options.timeoutMs ?? writeTimeoutMs
    const query = {
      ...timeoutQuery(timeoutMs),
      fieldManager: options.fieldManager ?? fieldManager,
      dryRun: options.dryRun ? 'All' : undefined,
      fieldValidation: options.fieldValidation,
      force: 'type' in options && options.type === 'apply' ? options.force : undefined,
    }
    const rest = { timeoutMs, signal: options.signal, isWrite: options.dryRun !== true }
    const call = describeCall(verb, resource, { ...target, subresource: options.subresource }, query, rest)
    const contentType = 'type' in options ? patchContentTypes[options.type] : 'application/json'
    return await this.#json<T>({ ...call, contentType, body: JSON.stringify(body) })
  }

  async #json<T>(call: Call): Promise<T> {
    const reply = await this.#transport.send(call)
    try {
      return JSON.parse(reply.body.toString()) as T
    } catch {
      // The server did what it was asked; what it said about it is lost. (The parser's own message would quote it.)
      throw new KubeError('OutcomeUnknown', `${call.what}: OutcomeUnknown (${reply.status}): the reply is not JSON`, {
        status: reply.status,
      })
    }
  }
}

interface CallTarget {
  namespace?: string | undefined
  name?: string | undefined
  subresource?: string | undefined
  /** What to call the object in messages when the path does not name it. */
  shownName?: string | undefined
}

function describeCall(
  verb: Verb,
  resource: Resource,
  target: CallTarget,
  query: Parameters<typeof requestPath>[2],
  rest: Pick<Call, 'timeoutMs' | 'signal' | 'isWrite'>,
): Call {
  const plural = target.subresource ? `${resource.plural}/${target.subresource}` : resource.plural
  const shown = refKey({ namespace: target.namespace ?? '', name: target.name ?? target.shownName ?? '*' })
  return {
    ...rest,
    verb,
    method: methods[verb],
    resource: plural,
    what: `${verb} ${plural} ${shown}`,
    path: requestPath(resource, target, query),
  }
}

/** The object with the type that the server insists on for kinds that it does not know by heart. */
function typed(resource: Resource, object: KubeObject): KubeObject {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object }
}

/** Makes the server stop too, so that a write given up here is not carried out long after. */
function timeoutQuery(timeoutMs: number): { timeout: string } {
  return { timeout: `${timeoutMs}ms` }
}

/** The events of a watch, with whatever breaks it told as a `KubeError`. */
async function* eventsOf<T extends KubeObject>(call: Call, { body, cutoff }: OpenWatch): AsyncGenerator<WatchEvent<T>> {
  try {
    yield* watchEvents<T>(body)
  } catch (error) {
    throw errorOfFailure(call, error)
  } finally {
    cutoff.close()
  }
}
