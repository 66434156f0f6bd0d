import { isAlias, isMap, isNode, isScalar, isSeq, type LineCounter, type Node } from 'yaml'

/** A step on a path: a key of a mapping, or a position in a list. */
export type Segment = string | number

/** `spec.env[0].name`, or a key in brackets as rules (`['a/b']`) and schemas (`["a/b"]`) write it. */
const segmentPattern = /\[(\d+)\]|\['(.*?)'\]|\["(.*?)"\]|\[([^\]]*)\]|([^.[\]]+)/g

/** The steps of a field's path as violations name it. */
export function segmentsOf(field: string): Segment[] {
  return [...field.matchAll(segmentPattern)].map(([, index, single, double, bare, key]) =>
    index === undefined ? (single ?? double ?? bare ?? key ?? '') : Number(index),
  )
}

/**
 * The line, counted from 1, where a path leads in a YAML document. A path that leads further than the document does, as
 * one to a missing field, ends at the last step that is there.
 */
export function lineAt(contents: Node, path: readonly Segment[], lines: LineCounter): number {
  let node: unknown = contents
  let offset = contents.range?.[0] ?? 0
  for (const segment of path) {
    const step = stepInto(node, segment)
    if (!step) break
    offset = step.offset ?? offset
    node = step.node
  }
  return lines.linePos(offset).line
}

function stepInto(node: unknown, segment: Segment): { node: unknown; offset: number | undefined } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => (isScalar(key) ? String(key.value) : undefined) === String(segment))
    return pair && { node: pair.value, offset: startOf(pair.key) }
  }
  if (!isSeq(node) || typeof segment !== 'number' || segment >= node.items.length) return undefined
  const item = node.items[segment]
  return { node: item, offset: startOf(item) }
}

/** What an alias stands for is written elsewhere; the line of the alias is where the reader put it. */
function startOf(node: unknown): number | undefined {
  return isNode(node) || isAlias(node) ? node.range?.[0] : undefined
}
