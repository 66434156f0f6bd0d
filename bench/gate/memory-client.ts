import type { KubeClient } from '../../src/kube/client.ts'
import type { KubeObject, ObjectList, Resource } from '../../src/kube/object.ts'

/**
 * An API in which nothing ever changes: lists what it is given and keeps its watches open. Every other request throws,
 * since a gate that needed one would be measured with somebody else's answer in it.
 */
export function memoryClient(objects: ReadonlyMap<string, readonly KubeObject[]>): KubeClient {
  const refuse = (): never => {
    throw new Error('the gate is measured without an API server')
  }
  return {
    list: async <T extends KubeObject>({ plural }: Resource<T>) =>
      ({ metadata: { resourceVersion: '1' }, items: [...(objects.get(plural) ?? [])] }) as ObjectList<T>,
    watch: async (_resource, { signal }) => silence(signal),
    get: async () => refuse(),
    create: async () => refuse(),
    replace: async () => refuse(),
    patch: async () => refuse(),
    delete: async () => refuse(),
    serverClockOffsetMs: () => 0,
    close: async () => undefined,
  }
}

/** Says nothing until the signal ends. */
function silence(signal: AbortSignal): AsyncIterable<never> {
  const ended = new Promise<IteratorResult<never>>((resolve) => {
    const end = () => resolve({ done: true, value: undefined })
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
  return { [Symbol.asyncIterator]: () => ({ next: () => ended }) }
}
