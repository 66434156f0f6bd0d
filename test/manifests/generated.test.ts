import { readdir, readFile } from 'node:fs/promises'
import t from 'tap'
import { generatedFiles } from '../../manifests/generated-files.ts'

const root = new URL('../../', import.meta.url)

t.test('the generated files in the repository are what the source says', async (t) => {
  for (const [path, text] of generatedFiles()) {
    t.equal(await readFile(new URL(path, root), 'utf8'), text, path)
  }
})

t.test('no generated file is left over from a kind that is gone', async (t) => {
  const folder = new URL('manifests/crds/', root)
  const expected = [...generatedFiles().keys()].filter((path) => path.startsWith('manifests/crds/'))
  const there = (await readdir(folder)).filter((name) => name !== 'kustomization.yaml')
  t.same(new Set(there.map((name) => `manifests/crds/${name}`)), new Set(expected))
  const kustomization = await readFile(new URL('kustomization.yaml', folder), 'utf8')
  for (const name of there) t.match(kustomization, name)
})

t.test('no generated file holds a path of the machine that wrote it, or a caBundle', async (t) => {
  for (const [path, text] of generatedFiles()) {
    t.notMatch(text, /\/(home|root|Users|work|tmp)\//, path)
    t.notMatch(text, 'caBundle', path)
  }
})
