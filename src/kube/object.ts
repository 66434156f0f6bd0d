/** The parts of a Kubernetes object that every kind shares, as they are on the wire. */
export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export interface ObjectMeta {
  name?: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: unknown[]
}

export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
}

/** Where a kind lives in the API. `T` is the type of its objects and exists only for the compiler. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** API group; the empty string is the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  readonly objectType?: T
}

/** Names one object of a resource. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly namespace?: string
  readonly name: string
}

export interface ObjectList<T extends KubeObject> {
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number }
  items: T[]
}

/** `group/version`, or just `version` in the core group: the value of an object's apiVersion field. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

/** The key under which stores and queues know an object: `namespace/name`, or `name` when cluster-scoped. */
export function keyOf(object: KubeObject): string {
  return refKey({ namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' })
}

export function refKey(ref: ObjectRef): string {
  return ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name
}

/** The owner reference that controls the object, if any. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true)
}
