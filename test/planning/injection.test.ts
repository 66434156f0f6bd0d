import t from 'tap'
import { injectEnv, mergeVolumeClaimTemplates } from '../../src/planning/injection.ts'

const spec = {
  initContainers: [{ name: 'setup', env: [{ name: 'A', value: 'old' }] }],
  containers: [
    {
      name: 'main',
      env: [
        { name: 'A', value: 'old' },
        { name: 'S', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
      ],
    },
    { name: 'side' },
  ],
}

t.test('an entry goes to the first main container unless it names another, init containers included', async (t) => {
  const injected = injectEnv(spec, [
    { name: 'B', value: '1' },
    { name: 'C', value: '2', containerName: 'side' },
    { name: 'A', value: 'new', containerName: 'setup' },
  ])
  t.same(injected.containers[0]?.env?.at(-1), { name: 'B', value: '1' })
  t.same(injected.containers[1]?.env, [{ name: 'C', value: '2' }])
  t.same(injected.initContainers?.[0]?.env, [{ name: 'A', value: 'new' }])
})

t.test('a replaced valueFrom is replaced whole, in its place', async (t) => {
  const env = injectEnv(spec, [{ name: 'S', value: 'plain' }]).containers[0]?.env
  t.same(env, [
    { name: 'A', value: 'old' },
    { name: 'S', value: 'plain' },
  ])
})

t.test('the template is not changed', async (t) => {
  const before = structuredClone(spec)
  injectEnv(spec, [{ name: 'A', value: 'new' }])
  t.same(spec, before)
  t.equal(injectEnv(spec, []), spec, 'and without variables it is handed on')
})

t.test('volumes merge by name: order kept, replaced in place, new ones at the end', async (t) => {
  const volume = (name: string, size: string) => ({
    metadata: { name },
    spec: { resources: { requests: { storage: size } } },
  })
  const merged = mergeVolumeClaimTemplates(
    [volume('a', '1Gi'), volume('b', '1Gi')],
    [volume('c', '3Gi'), volume('a', '2Gi')],
  )
  t.same(merged, [volume('a', '2Gi'), volume('b', '1Gi'), volume('c', '3Gi')])
})

t.test(
  'an entry that names no container, even by an empty name, is not lost; one without a value is empty',
  async (t) => {
    const env = injectEnv(spec, [{ name: 'E', containerName: '' }]).containers[0]?.env
    t.same(env?.at(-1), { name: 'E' })
  },
)
