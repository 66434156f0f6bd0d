import type { TSchema } from 'typebox'
import type { Resource, KubeObject } from '../kube/object.ts'

export interface PrinterColumn {
  name: string
  type: 'string' | 'integer' | 'date'
  jsonPath: string
  /** 1 shows the column only with `-o wide`. */
  priority?: number
}

/** One kind of our API: where it lives, what it holds and how kubectl prints it. */
export interface Kind<T extends KubeObject = KubeObject> extends Resource<T> {
  readonly namespaced: true
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly description: string
  readonly spec: TSchema
  readonly status?: TSchema
  /** Scale subresource: `.spec.replicas`, `.status.replicas`, `.status.selector`. */
  readonly scale: boolean
  readonly columns: readonly PrinterColumn[]
}

export const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }
