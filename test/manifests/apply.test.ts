import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import t from 'tap'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { startControlPlane } from '../../devcluster/control-plane.ts'
import { crdOf } from '../../src/api/crd.ts'
import { kinds } from '../../src/api/kinds.ts'
import type { KubeObject } from '../../src/kube/object.ts'

const folder = fileURLToPath(new URL('../../manifests', import.meta.url))
const binaries = await findControlPlane(() => undefined)
const cluster = await startControlPlane({ binaries, log: pino({ level: 'silent' }) })
t.teardown(() => cluster.stop())

async function kubectl(...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await cluster.kubectl(args)
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`)
  return stdout
}

t.test('the install applies to an empty cluster, and again without a change', async (t) => {
  await kubectl('apply', '-k', folder)
  const again = await kubectl('apply', '-k', folder)
  t.notMatch(again, /configured|created/)
})

t.test('the API server accepts every definition and finds its schema structural', async (t) => {
  await kubectl('wait', '--for=condition=Established', '--timeout=30s', ...kinds.map(nameOf))
  for (const kind of kinds) {
    const crd = JSON.parse(await kubectl('get', nameOf(kind), '-o', 'json')) as KubeObject & {
      status: { conditions: { type: string; status: string }[] }
    }
    t.same(
      crd.status.conditions.filter(({ type }) => type === 'NonStructuralSchema'),
      [],
      kind.kind,
    )
  }
})

t.test('short names and the category list the kinds', async (t) => {
  // What kubectl knew before the definitions came is not asked for again within ten minutes.
  const fresh = `--cache-dir=${cluster.directory}/kubectl-fresh`
  for (const name of ['swp', 'sbs', 'sandboxclaims', 'sandboxtemplates', 'sandboxes', 'sandgate']) {
    t.equal(await kubectl('get', name, fresh, '--namespace=default', '--ignore-not-found'), '', name)
  }
})

t.test('the service account may do what the manifests say and no more', async (t) => {
  const may = async (verb: string, resource: string, namespace: string, ...flags: string[]) => {
    const user = '--as=system:serviceaccount:sandgate-system:sandgate'
    const { stdout } = await cluster.kubectl(['auth', 'can-i', verb, resource, `-n=${namespace}`, user, ...flags])
    return stdout.trim() === 'yes'
  }
  t.ok(await may('patch', 'sandboxes.agents.x-k8s.io', 'default'))
  t.ok(await may('update', 'sandboxclaims.extensions.agents.x-k8s.io', 'default', '--subresource=finalizers'))
  t.ok(await may('get', 'secrets/sandgate-origin-keys', 'sandgate-system'))
  t.notOk(await may('get', 'secrets', 'default'))
  t.notOk(await may('list', 'secrets', 'sandgate-system'))
  t.notOk(await may('create', 'rolebindings.rbac.authorization.k8s.io', 'sandgate-system'))
  t.notOk(await may('update', 'sandboxtemplates.extensions.agents.x-k8s.io', 'default'))
})

t.test('with the gate down, what is not ours still works, and our own namespace does', async (t) => {
  await kubectl('create', 'configmap', 'anything', '--namespace=default')
  const refused = await cluster.kubectl(['apply', '-f', '-'], {
    input: JSON.stringify({
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      metadata: { name: 'claim', namespace: 'default' },
      spec: { warmPoolRef: { name: 'pool' } },
    }),
  })
  t.not(refused.code, 0, 'a claim is refused: the webhooks fail closed')
  t.match(refused.stderr, 'claims.mutate.sandgate.dev')
})

t.test('uninstalling with the gate down leaves nothing and does not hang', async (t) => {
  await uninstall(folder)
  const left = await kubectl('get', 'crd,clusterrole,clusterrolebinding,validatingwebhookconfiguration', '-o', 'name')
  t.same(
    left.split('\n').filter((name) => name.includes('sandgate') || kinds.some((kind) => name.endsWith(kind.group))),
    [],
  )
})

t.test('the examples apply to a server that has the definitions', async (t) => {
  await kubectl('apply', '-k', `${folder}/crds`)
  await kubectl('wait', '--for=condition=Established', '--timeout=30s', ...kinds.map(nameOf))
  for (const path of ['first-claim', 'claim-with-env.yaml', 'sandbox-set.yaml', 'autoscaler.yaml']) {
    const applied = await kubectl('apply', '-f', `${folder}/../examples/${path}`, '--namespace=default')
    t.match(applied, 'created', path)
  }
  await kubectl('delete', '-k', `${folder}/crds`, '--timeout=60s')
})

t.test('the overlays that need no other product apply as well', async (t) => {
  for (const overlay of ['gate-only', 'external-sandboxes']) {
    await kubectl('apply', '-k', `${folder}/overlays/${overlay}`)
    await uninstall(`${folder}/overlays/${overlay}`)
  }
  t.pass()
})

/** What goes with its namespace may be gone before kubectl comes to it. */
async function uninstall(path: string): Promise<void> {
  await kubectl('delete', '-k', path, '--ignore-not-found', '--timeout=60s')
}

function nameOf(kind: (typeof kinds)[number]): string {
  return `crd/${crdOf(kind).metadata.name}`
}
