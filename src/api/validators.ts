import { Ajv, type ErrorObject } from 'ajv'
import { default as addFormats } from 'ajv-formats'
import type { KubeObject } from '../kube/object.ts'
import type { Kind } from './kind.ts'

/** One thing in an object that its kind's schema does not allow. */
export interface SchemaProblem {
  /** Path in the object, e.g. `spec.env[0].name`. */
  readonly field: string
  readonly message: string
}

/** Checks objects against their kinds' schemas as the API server would, without one. */
export interface Validators {
  /**
   * The problems with the `spec` of an object of `kind`, in the order found; empty when there are none. The object is
   * not changed: defaults are not filled in and unknown fields stay, as the API server's pruning is not a refusal.
   */
  problemsOf(kind: Kind, object: KubeObject): readonly SchemaProblem[]
}

/** Compiles the schema of each kind once. */
export function createValidators(kinds: readonly Kind[]): Validators {
  const ajv = new Ajv({ allErrors: true, strict: false, useDefaults: false, coerceTypes: false, verbose: true })
  addFormats.default(ajv)
  const compiled = new Map(kinds.map((kind) => [kind.kind, ajv.compile(specOf(kind))]))
  return {
    problemsOf(kind, object) {
      const validate = compiled.get(kind.kind)
      if (!validate) throw new Error(`no schema was compiled for kind ${kind.kind}`)
      if (validate(object)) return []
      return (validate.errors ?? []).filter((error) => !isPartOfChoice(error)).map(problemOf)
    },
  }
}

function specOf(kind: Kind): object {
  return { type: 'object', required: ['spec'], properties: { spec: kind.spec } }
}

/** The branches of an `anyOf` report themselves besides the `anyOf`: one of the three is enough. */
function isPartOfChoice(error: ErrorObject): boolean {
  return error.schemaPath.includes('/anyOf/')
}

function problemOf(error: ErrorObject): SchemaProblem {
  const path = error.instancePath.split('/').slice(1).map(unescapePointer)
  if (error.keyword === 'required') path.push(String(error.params['missingProperty']))
  return { field: fieldOf(path), message: messageOf(error) }
}

function messageOf(error: ErrorObject): string {
  switch (error.keyword) {
    case 'required':
      return 'is required'
    case 'enum':
      return `must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}, not ${shown(error.data)}`
    case 'anyOf':
      return `must be a number or a string, not ${shown(error.data)}`
    case 'format':
      return `must be a ${String(error.params['format'])}, not ${shown(error.data)}`
    default:
      return `${error.message ?? 'is not valid'}, not ${shown(error.data)}`
  }
}

/** A value cut to a length that fits a line. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/** JSON Pointer (RFC 6901) writes `/` in a key as `~1` and `~` as `~0`. */
function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

function fieldOf(path: readonly string[]): string {
  return path.reduce((field, segment) => {
    if (/^\d+$/.test(segment)) return `${field}[${segment}]`
    if (!/^[A-Za-z][\w-]*$/.test(segment)) return `${field}[${JSON.stringify(segment)}]`
    return field === '' ? segment : `${field}.${segment}`
  }, '')
}
