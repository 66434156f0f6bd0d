import { glob, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { isMap, LineCounter, parseAllDocuments, type Document } from 'yaml'
import type { KubeObject } from '../kube/object.ts'
import { lineAt, segmentsOf, type Segment } from './field-lines.ts'

/** One object of a manifest, with where it stands. */
export interface Manifest {
  /** As it was named on the command line, or found below what was; `stdin` for standard input. */
  readonly file: string
  /** Its document in the file, counted from 1. */
  readonly document: number
  readonly object: KubeObject
  /** The line of a field, counted from 1; of its closest parent when it is not there. */
  lineOf(field: string): number
}

export interface Read {
  readonly manifests: readonly Manifest[]
  /** What cannot be read, each with its place: `file:line: problem`. */
  readonly problems: readonly string[]
}

const extensions = '**/*.{yaml,yml,json}'

/** Reads the files named, and those in the folders named; `-` is standard input. Never rejects for what it reads. */
export async function readManifests(paths: readonly string[], stdin: NodeJS.ReadableStream): Promise<Read> {
  const manifests: Manifest[] = []
  const problems: string[] = []
  const take = (read: Read) => {
    manifests.push(...read.manifests)
    problems.push(...read.problems)
  }
  for (const path of paths) {
    try {
      if (path === '-') take(parseManifests(await text(stdin), 'stdin'))
      else for (const file of await filesAt(path)) take(parseManifests(await readFile(file, 'utf8'), file))
    } catch (error) {
      const { code = String(error) } = error as { code?: string }
      problems.push(`${path}: cannot be read (${code})`)
    }
  }
  return { manifests, problems }
}

/** The file itself, or every manifest below a folder, in the order of their names. Packages and hidden folders are not entered. */
async function filesAt(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const found: string[] = []
  const exclude = (name: string) => name === 'node_modules' || (name.startsWith('.') && name !== '.')
  for await (const file of glob(extensions, { cwd: path, exclude })) found.push(join(path, file))
  return found.toSorted()
}

/** The objects of one file: documents, and the items of lists among them. */
export function parseManifests(source: string, file: string): Read {
  const lines = new LineCounter()
  const documents = [...parseAllDocuments(source, { ...asKubectl, lineCounter: lines, prettyErrors: false })]
  const problems: string[] = []
  const manifests: Manifest[] = []
  const complain = (offset: number, problem: string) => {
    problems.push(`${file}:${lines.linePos(offset).line}: ${problem.replaceAll(/\s+/g, ' ')}`)
  }
  for (const [position, document] of documents.entries()) {
    const error = document.errors[0]
    if (error) {
      complain(error.pos[0], error.message)
      // What follows a syntax error is guesswork.
      break
    }
    const { contents } = document
    if (contents === null || (!isMap(contents) && document.toJS() === null)) continue
    if (!isMap(contents)) {
      complain(contents.range[0], 'a manifest must be a mapping, with apiVersion, kind and metadata')
      continue
    }
    try {
      for (const { object, at } of objectsIn(valueOf(document), [])) {
        const lineOf = (field: string) => lineAt(contents, [...at, ...segmentsOf(field)], lines)
        manifests.push({ file, document: position + 1, object, lineOf })
      }
    } catch (failure) {
      complain(contents.range?.[0] ?? 0, failure instanceof Error ? failure.message : String(failure))
    }
  }
  return { manifests, problems }
}

/**
 * kubectl reads YAML 1.1 (`yes` is true, `0777` is octal) without its times and base-60 numbers: what looks like one
 * stays a string.
 */
const asKubectl = {
  version: '1.1',
  uniqueKeys: true,
  customTags: (tags) =>
    tags.filter((tag) => typeof tag === 'string' || (tag.format !== 'TIME' && !tag.tag.endsWith(':timestamp'))),
} as const satisfies Parameters<typeof parseAllDocuments>[1]

/** Throws when aliases blow it up beyond all measure. */
function valueOf(document: Document): Record<string, unknown> {
  return document.toJS({ maxAliasCount: 100 }) as Record<string, unknown>
}

function objectsIn(value: Record<string, unknown>, at: readonly Segment[]): { object: KubeObject; at: Segment[] }[] {
  const { kind, items, apiVersion } = value
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) {
    return [{ object: withMetadata(value), at: [...at] }]
  }
  // Items of a list of one kind may leave out what the list says.
  const implied = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) }
  return items.flatMap((item: unknown, position) =>
    isObject(item) ? objectsIn({ ...implied, ...item }, [...at, 'items', position]) : [],
  )
}

/** Metadata of another shape than a mapping is for the schema to refuse. */
function withMetadata(value: Record<string, unknown>): KubeObject {
  return { ...value, metadata: isObject(value['metadata']) ? value['metadata'] : {} }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
