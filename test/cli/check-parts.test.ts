import t from 'tap'
import { applied } from '../../src/cli/applied.ts'
import { parseManifests } from '../../src/cli/check-manifests.ts'
import { segmentsOf } from '../../src/cli/field-lines.ts'
import type { KubeObject } from '../../src/kube/object.ts'

t.test('a path is taken apart, keys in brackets included', async (t) => {
  t.same(segmentsOf('spec.env[0].name'), ['spec', 'env', 0, 'name'])
  t.same(segmentsOf("metadata.labels['a.b/c'].d"), ['metadata', 'labels', 'a.b/c', 'd'])
  t.same(segmentsOf('spec.nodeSelector["a.b/c"]'), ['spec', 'nodeSelector', 'a.b/c'])
  t.same(segmentsOf('metadata.annotations[a.b/c]'), ['metadata', 'annotations', 'a.b/c'])
  t.same(segmentsOf(''), [])
})

t.test('a field has its line, a missing one that of its closest parent', async (t) => {
  const source = `# a comment
kind: A
---
kind: B
metadata:
  labels:
    a.b/c: d
spec:
  list:
    - name: one
    - name: two
      flow: { deep: [1,
        2] }
`
  const [, second] = parseManifests(source, 'f').manifests
  const rows: [string, number][] = [
    ['kind', 4],
    ["metadata.labels['a.b/c']", 7],
    ['spec.list[0]', 10],
    ['spec.list[1].name', 11],
    ['spec.list[1].flow.deep[1]', 13],
    ['spec.list[1].missing.deeper', 11],
    ['spec.list[7].name', 9],
    ['spec.other', 8],
    ['status', 4],
    ['', 4],
  ]
  for (const [field, line] of rows) t.equal(second?.lineOf(field), line, field)
})

t.test('items of lists are objects of their own, with lines of their own', async (t) => {
  const source = `kind: List
items:
  - kind: A
    spec: 1
  - apiVersion: v1
    kind: BList
    items:
      - metadata: { name: b }
        spec: 2
      - { kind: C, apiVersion: c/v1 }
`
  const { manifests } = parseManifests(source, 'f')
  t.match(manifests, [
    { object: { kind: 'A' }, document: 1 },
    { object: { kind: 'B', apiVersion: 'v1', metadata: { name: 'b' } } },
    { object: { kind: 'C', apiVersion: 'c/v1' } },
  ])
  t.same(
    manifests.map(({ lineOf }) => lineOf('spec')),
    [4, 9, 10],
  )
})

t.test('YAML is read as kubectl does', async (t) => {
  const [first] = parseManifests('a: yes\nb: 010\nc: 2026-01-01T00:00:00Z\nd: 12:30:00\ne: 2026-01-01', 'f').manifests
  t.match(first?.object, { a: true, b: 8, c: '2026-01-01T00:00:00Z', d: '12:30:00', e: '2026-01-01' })
})

t.test('empty documents are no objects', async (t) => {
  t.same(
    parseManifests('---\n# nothing\n---\nkind: A\n---\n', 'f').manifests.map(({ document }) => document),
    [2],
  )
  t.same(parseManifests('', 'f'), { manifests: [], problems: [] })
})

t.test('aliases that blow up are a problem, not the end of the memory', async (t) => {
  const level = (n: number) => `l${n}: &l${n} [${Array.from({ length: 10 }, () => `*l${n - 1}`).join(', ')}]\n`
  const bomb = `l0: &l0 [x]\n${[1, 2, 3, 4, 5, 6, 7, 8, 9].map(level).join('')}`
  const { problems } = parseManifests(bomb, 'bomb.yaml')
  t.match(problems, [/^bomb\.yaml:1: /])
})

t.test('applying merges mappings, replaces lists, and removes what the last manifest had', async (t) => {
  const last = { metadata: { labels: { mine: '1', gone: '1' } }, spec: { a: 1, list: [1, 2], nested: { x: 1, y: 1 } } }
  const stored = {
    metadata: {
      uid: 'u',
      labels: { mine: '1', gone: '1', theirs: '1' },
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(last) },
    },
    spec: { a: 1, list: [1, 2], nested: { x: 1, y: 1, defaulted: true } },
    status: { ready: true },
  } as KubeObject
  const manifest = {
    metadata: { labels: { mine: '2' } },
    spec: { list: [3], nested: { x: 2 }, none: null },
  } as unknown as KubeObject
  t.match(applied(stored, manifest), {
    metadata: { uid: 'u', labels: { mine: '2', theirs: '1' } },
    spec: { list: [3], nested: { x: 2, defaulted: true } },
    status: { ready: true },
  })
  const { spec, metadata } = applied(stored, manifest) as KubeObject & { spec: object }
  t.same(Object.keys(spec).toSorted(), ['list', 'nested'])
  t.same(Object.keys(metadata.labels ?? {}).toSorted(), ['mine', 'theirs'])
})
