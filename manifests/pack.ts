import { cp, mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** Puts beside the compiled program what it reads at run time. The last step of `npm run build`. */
const root = new URL('../', import.meta.url)
const dist = new URL('dist/', root)
const packed = [
  // Says that the .js files are modules, and the version.
  'package.json',
  'manifests/base',
  'manifests/crds',
  'manifests/gate',
  'manifests/reconcilers',
  'manifests/sandboxes',
  'manifests/overlays/cert-manager',
  'devcluster/build-from-debian.sh',
  'devcluster/build-once.sh',
  'devcluster/demo/pool.yaml',
  'devcluster/launch.sh',
  'devcluster/warden.sh',
]

await mkdir(dist, { recursive: true })
for (const path of packed) {
  await cp(fileURLToPath(new URL(path, root)), fileURLToPath(new URL(path, dist)), { recursive: true })
}
