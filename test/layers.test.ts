import { glob, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path/posix'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

/** What each layer may import besides itself. Types count: a type is knowledge too. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  // A request's time limit is time too.
  'src/kube': ['src/runtime/clock.ts'],
  'src/runtime': ['src/kube'],
  'src/api': ['src/kube/object.ts'],
  'src/config': ['src/api', 'src/policy', 'src/runtime/clock.ts'],
  'src/policy': ['src/api', 'src/config', 'src/kube/object.ts', 'src/kube/errors.ts'],
  'src/planning': ['src/policy', 'src/api', 'src/config', 'src/kube/object.ts', 'src/kube/errors.ts'],
  'src/telemetry': ['src/kube', 'src/runtime', 'src/api'],
  'src/controllers': [
    'src/planning',
    'src/policy',
    'src/api',
    'src/config',
    'src/kube',
    'src/runtime',
    'src/telemetry',
  ],
  webhooks: [
    'src/api',
    'src/policy',
    'src/config',
    'src/kube',
    'src/telemetry',
    // The read side.
    'src/runtime/clock.ts',
    'src/runtime/store.ts',
    'src/runtime/informer.ts',
  ],
  certs: ['src/kube', 'src/api/core.ts', 'src/runtime/clock.ts', 'src/telemetry'],
}
/** Where everything is put together; these may import all layers. */
const composition = ['src/main.ts', 'src/cli']
const shipped = ['src', 'webhooks', 'certs']

const importPattern = /(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g
/** Time and timers, which only the clock may touch, so that everything else can be tested with a manual one. */
const timePattern =
  /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|(?<![.\w])set(?:Timeout|Interval)\(|'node:timers|'timers\//g
/** Where the pure layers would reach out. */
const impurePattern = /\bprocess\.(?=\w)|\bfetch\(|'node:(?!(?:crypto|util)')[^']+'|\bMath\.random\(/g

process.chdir(fileURLToPath(new URL('../', import.meta.url)))
const sources = await readSources()

t.test('each layer imports only the layers below it', async (t) => {
  for (const source of sources) {
    const layer = layerOf(source.path)
    if (!layer) continue
    const below = [layer, ...(allowed[layer] ?? [])]
    const wrong = source.imports.filter((path) => !below.some((prefix) => isIn(path, prefix)))
    t.same(wrong, [], `${source.path} imports only ${below.join(', ')}`)
  }
})

t.test('every shipped file belongs to a layer or to the composition', async (t) => {
  for (const { path } of sources.filter((source) => shipped.some((folder) => isIn(source.path, folder)))) {
    t.ok(layerOf(path) || composition.some((prefix) => isIn(path, prefix)), path)
  }
})

t.test('nothing that ships imports devcluster, bench or test, except sandgate dev', async (t) => {
  for (const source of sources.filter(({ path }) => shipped.some((folder) => isIn(path, folder)))) {
    if (source.path === 'src/cli/dev.ts') continue
    t.same(
      source.imports.filter((path) => ['devcluster', 'bench', 'test'].some((folder) => isIn(path, folder))),
      [],
      source.path,
    )
  }
})

t.test('the generic layers know no word of the domain', async (t) => {
  for (const { path, code } of sources.filter(
    (source) => isIn(source.path, 'src/kube') || isIn(source.path, 'src/runtime'),
  )) {
    t.same(code.match(/\w*(?:sandbox|warm.?pool|agents\.)\w*/gi) ?? [], [], path)
  }
})

t.test('policy and planning read no clock, environment, network or chance', async (t) => {
  for (const { path, code } of sources.filter(
    (source) => isIn(source.path, 'src/policy') || isIn(source.path, 'src/planning'),
  )) {
    t.same(code.match(impurePattern) ?? [], [], path)
  }
})

t.test('only the clock touches time and timers', async (t) => {
  for (const { path, code } of sources.filter((source) => shipped.some((folder) => isIn(source.path, folder)))) {
    if (path !== 'src/runtime/clock.ts') t.same(code.match(timePattern) ?? [], [], path)
  }
})

t.test('a file is at most 250 lines long, or says at its top why it is longer', async (t) => {
  // Tests are left out: a long table of rows is no burden to a reader.
  for (const { path, text } of sources.filter((source) => !isIn(source.path, 'test'))) {
    const lines = text.trimEnd().split('\n')
    const hasReason = lines.slice(0, 10).some((line) => /Longer than 250 lines: \S/.test(line))
    t.ok(lines.length <= 250 || hasReason, `${path} has ${lines.length} lines`)
  }
})

t.test('no file is named after what does not say what is in it', async (t) => {
  for (const { path } of sources) t.notMatch(path, /(^|\/)(utils?|helpers?|common|misc|shared|lib)(\/|\.ts$)/, path)
})

interface Source {
  readonly path: string
  readonly text: string
  /** The text without comments, which may speak of anything. */
  readonly code: string
  /** Paths from the top of the repository; packages are left out. */
  readonly imports: readonly string[]
}

async function readSources(): Promise<Source[]> {
  const found: Source[] = []
  for (const folder of [...shipped, 'manifests', 'devcluster', 'bench', 'test']) {
    for await (const path of glob(`${folder}/**/*.ts`)) {
      const text = await readFile(path, 'utf8')
      const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(?<!:)\/\/.*$/gm, '')
      const relative = [...code.matchAll(importPattern)].flatMap(([, name]) => (name?.startsWith('.') ? [name] : []))
      found.push({ path, text, code, imports: relative.map((name) => normalize(join(dirname(path), name))) })
    }
  }
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

function layerOf(path: string): string | undefined {
  return Object.keys(allowed).find((layer) => isIn(path, layer))
}

function isIn(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`)
}
