import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { kinds } from '../src/api/kinds.ts'
import { createValidators } from '../src/api/validators.ts'
import { parseConfig } from '../src/config/load.ts'
import type { KubeObject } from '../src/kube/object.ts'

const examples = fileURLToPath(new URL('../examples', import.meta.url))
const validators = createValidators(kinds)

t.test('every example of our kinds fits its schema', async (t) => {
  const seen = new Set<string>()
  for await (const file of glob('**/*.yaml', { cwd: examples })) {
    for (const document of parseAllDocuments(await readFile(`${examples}/${file}`, 'utf8'))) {
      const object = document.toJS() as KubeObject
      const kind = kinds.find((candidate) => candidate.kind === object.kind)
      if (!kind) continue
      seen.add(kind.kind)
      t.equal(object.apiVersion, `${kind.group}/${kind.version}`, file)
      t.same(validators.problemsOf(kind, object), [], `${file} ${object.metadata.name}`)
    }
  }
  t.same([...seen].toSorted(), ['SandboxClaim', 'SandboxSet', 'SandboxTemplate', 'SandboxWarmPool'])
})

t.test('the example configuration is one', async (t) => {
  const path = `${examples}/configuration.yaml`
  const config = parseConfig(await readFile(path, 'utf8'), path)
  t.match(config, { admission: { podSecurity: 'restricted' }, claims: { maxPerNamespace: 100 } })
})
