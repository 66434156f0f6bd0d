import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { findControlPlane } from '../../devcluster/binaries.ts'
import { install, readManifests, renderInstall, type InstallOptions } from '../../src/cli/manifests.ts'
import { parseConfig } from '../../src/config/load.ts'
import type { KubeObject } from '../../src/kube/object.ts'

const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../manifests', import.meta.url))
const overlays = (await readdir(`${folder}/overlays`)).map((name) => `overlays/${name}`)
const kubectls = await availableKubectls()
const shipped = await readManifests()

t.ok(kubectls.length > 0, 'a kubectl is there to build with')

for (const kubectl of kubectls) {
  t.test(`every overlay builds with ${await versionOf(kubectl)}`, async (t) => {
    for (const path of ['.', ...overlays]) {
      const objects = await build(kubectl, path)
      t.ok(objects.some(({ kind }) => kind === 'Deployment') && objects.length > 15, path)
      const configMap = byName(objects).get(`ConfigMap/${install.configMap}`) as KubeObject & {
        data: Record<string, string>
      }
      t.doesNotThrow(
        () => parseConfig(configMap.data[install.configKey] ?? '', path),
        `${path} has a valid configuration`,
      )
    }
  })

  t.test(`kustomize and sandgate manifests agree, with ${await versionOf(kubectl)}`, async (t) => {
    const pairs: [string, InstallOptions][] = [
      ['.', {}],
      ['overlays/ha', { replicas: 3 }],
      ['overlays/cert-manager', { certificates: { kind: 'cert-manager' } }],
    ]
    for (const [path, options] of pairs) {
      const built = byName(await build(kubectl, path))
      for (const [name, object] of byName(renderInstall(shipped, options)))
        t.same(built.get(name), object, `${path} ${name}`)
    }
  })

  t.test(
    `an overlay takes away the rights that its processes do not use, with ${await versionOf(kubectl)}`,
    async (t) => {
      const names = async (path: string) => new Set(byName(await build(kubectl, path)).keys())
      const gateOnly = await names('overlays/gate-only')
      t.notOk(
        gateOnly.has('ClusterRole/sandgate-reconcilers') || gateOnly.has('ClusterRoleBinding/sandgate-reconcilers'),
      )
      t.notOk(gateOnly.has('ClusterRole/sandgate-sandboxes') || gateOnly.has('ClusterRoleBinding/sandgate-sandboxes'))
      t.ok(gateOnly.has('ClusterRole/sandgate-gate'))
      const external = await names('overlays/external-sandboxes')
      t.notOk(external.has('ClusterRole/sandgate-sandboxes') || external.has('ClusterRoleBinding/sandgate-sandboxes'))
      t.ok(external.has('ClusterRole/sandgate-reconcilers'))
    },
  )
}

async function build(kubectl: string, path: string): Promise<KubeObject[]> {
  const { stdout } = await run(kubectl, ['kustomize', `${folder}/${path}`], { maxBuffer: 2 ** 24 })
  // YAML 1.1, as kubectl reads it: 0444 is an octal number there.
  return parseAllDocuments(stdout, { version: '1.1' }).map((document) => document.toJS() as KubeObject)
}

function byName(objects: readonly KubeObject[]): Map<string, KubeObject> {
  return new Map(objects.map((object) => [`${object.kind}/${object.metadata.name}`, object]))
}

/** The control plane's own kubectl, which is the oldest supported, and the machine's. */
async function availableKubectls(): Promise<string[]> {
  const { kubectl } = await findControlPlane(() => undefined)
  const candidates = [...(kubectl ? [kubectl] : []), 'kubectl']
  const working = await Promise.all(candidates.map((path) => versionOf(path).then(Boolean, () => false)))
  return candidates.filter((_, position) => working[position])
}

async function versionOf(kubectl: string): Promise<string> {
  const { stdout } = await run(kubectl, ['version', '--client', '-o', 'json'])
  return `kubectl ${(JSON.parse(stdout) as { clientVersion: { gitVersion: string } }).clientVersion.gitVersion}`
}
