import { readFile } from 'node:fs/promises'
import { parse, parseAllDocuments, stringify } from 'yaml'
import type { KubeObject } from '../kube/object.ts'

/** Names that the shipped manifests use. */
export const install = {
  namespace: 'sandgate-system',
  serviceAccount: 'sandgate',
  /** The Service in front of the gate; what its certificate is for. */
  service: 'sandgate-webhook',
  /** Both webhook configurations. */
  registration: 'sandgate',
  deployment: 'sandgate',
  configMap: 'sandgate-config',
  configKey: 'config.yaml',
  /** Secret with the gate's certificate authority. */
  authoritySecret: 'sandgate-certificates',
  /** The Lease that the reconcilers of all replicas compete for. */
  lease: 'sandgate-reconcilers',
} as const

/** Where the gate's serving certificate comes from. */
export type CertificateSource =
  /** sandgate issues and rotates it. */
  | { readonly kind: 'managed' }
  /** cert-manager does, with a CA of its own. */
  | { readonly kind: 'cert-manager' }
  /** A TLS Secret that something else keeps; so is the caBundle. */
  | { readonly kind: 'secret'; readonly name: string }

export interface InstallOptions {
  readonly image?: string
  readonly namespace?: string
  readonly replicas?: number
  readonly certificates?: CertificateSource
  /** `https://host:port` of a gate outside the cluster: no Deployment and no Service then. */
  readonly url?: string
}

export interface ShippedManifests {
  readonly base: readonly KubeObject[]
  readonly certManager: readonly KubeObject[]
}

type Json = { [key: string]: unknown }

const tlsFolder = '/etc/sandgate-tls'
const manifestsFolder = new URL('../../manifests/', import.meta.url)

/** Reads the manifests that ship beside the program, in the order in which they apply. */
export async function readManifests(folder: URL = manifestsFolder): Promise<ShippedManifests> {
  const base = await readKustomization(new URL('base/', folder))
  const certManager = await readObjects(new URL('overlays/cert-manager/certificate.yaml', folder))
  return { base, certManager }
}

async function readKustomization(folder: URL): Promise<KubeObject[]> {
  const text = await readFile(new URL('kustomization.yaml', folder), 'utf8')
  const { bases = [], resources = [] } = parse(text) as { bases?: string[]; resources?: string[] }
  const parts = await Promise.all([
    ...bases.map((base) => readKustomization(new URL(`${base}/`, folder))),
    ...resources.map((file) => readObjects(new URL(file, folder))),
  ])
  return parts.flat()
}

async function readObjects(file: URL): Promise<KubeObject[]> {
  return parseAllDocuments(await readFile(file, 'utf8')).map((document) => document.toJS() as KubeObject)
}

/** The install for `options`: what `kubectl apply -k manifests/` applies when there are none. */
export function renderInstall(shipped: ShippedManifests, options: InstallOptions = {}): KubeObject[] {
  const certificates = options.certificates ?? { kind: 'managed' }
  const objects = [...shipped.base, ...(certificates.kind === 'cert-manager' ? shipped.certManager : [])]
    .filter((object) => options.url === undefined || !runsInCluster(object))
    .map((object) => structuredClone(object))
  for (const object of objects) adapt(object as KubeObject & Json, options, certificates)
  return objects.map((object) => inNamespace(object, options.namespace ?? install.namespace))
}

/** The objects as one YAML stream. */
export function installYaml(objects: readonly KubeObject[]): string {
  // YAML 1.1 is what kubectl reads.
  return objects
    .map((object) => stringify(object, { version: '1.1', lineWidth: 120, aliasDuplicateObjects: false }))
    .join('---\n')
}

function runsInCluster(object: KubeObject): boolean {
  return object.kind === 'Deployment' || object.kind === 'Service'
}

function adapt(object: KubeObject & Json, options: InstallOptions, certificates: CertificateSource): void {
  switch (object.kind) {
    case 'Deployment':
      return adaptDeployment(object, options, certificates)
    case 'ConfigMap':
      return adaptConfig(object, options)
    case 'MutatingWebhookConfiguration':
    case 'ValidatingWebhookConfiguration':
      return adaptRegistration(object, options, certificates)
    case 'ClusterRole':
      if (object.metadata.name === 'sandgate-registration' && certificates.kind !== 'managed') withoutPatch(object)
      return
    default:
  }
}

function adaptDeployment(object: KubeObject & Json, options: InstallOptions, certificates: CertificateSource): void {
  const spec = object['spec'] as { replicas: number; template: { spec: PodSpec } }
  const container = spec.template.spec.containers[0]
  if (!container) throw new Error('the shipped Deployment has no container')
  if (options.replicas !== undefined) spec.replicas = options.replicas
  if (options.image !== undefined) container.image = options.image
  if (certificates.kind === 'managed') return
  const secretName = certificates.kind === 'secret' ? certificates.name : 'sandgate-webhook-tls'
  container.args.push(`--certificates=${tlsFolder}`)
  container.volumeMounts.unshift({ name: 'tls', mountPath: tlsFolder, readOnly: true })
  // 0444: read by a user that is not root.
  spec.template.spec.volumes.unshift({ name: 'tls', secret: { secretName, defaultMode: 0o444 } })
}

type PodSpec = {
  containers: { image: string; args: string[]; volumeMounts: Json[] }[]
  volumes: Json[]
}

/** The rules trust the controllers by user name, which holds their namespace; the default is for the default one. */
function adaptConfig(object: KubeObject & Json, { namespace }: InstallOptions): void {
  if (namespace === undefined || namespace === install.namespace) return
  const data = object['data'] as Record<string, string>
  const config = parse(data[install.configKey] ?? '') as Json
  const controllers = [`system:serviceaccount:${namespace}:${install.serviceAccount}`]
  data[install.configKey] = stringify({ ...config, admission: { controllers } })
}

function adaptRegistration(object: KubeObject & Json, options: InstallOptions, certificates: CertificateSource): void {
  if (certificates.kind === 'cert-manager') {
    object.metadata.annotations = {
      ...object.metadata.annotations,
      'cert-manager.io/inject-ca-from': `${options.namespace ?? install.namespace}/sandgate-webhook`,
    }
  }
  if (options.url === undefined) return
  const base = options.url.replace(/\/$/, '')
  for (const webhook of object['webhooks'] as { clientConfig: Json }[]) {
    const { path } = webhook.clientConfig['service'] as { path: string }
    webhook.clientConfig = { url: `${base}${path}` }
  }
}

/** The caBundle is someone else's to write: reading it is enough. */
function withoutPatch(role: KubeObject & Json): void {
  for (const rule of role['rules'] as { verbs: string[] }[]) rule.verbs = rule.verbs.filter((verb) => verb !== 'patch')
}

/** Every value that is the default namespace, or a DNS name in it, in the other namespace. */
function inNamespace(object: KubeObject, namespace: string): KubeObject {
  if (namespace === install.namespace) return object
  const dnsName = `${install.service}.${install.namespace}`
  const moved = JSON.stringify(object, (_key, value: unknown) => {
    if (value === install.namespace) return namespace
    if (typeof value !== 'string' || !value.startsWith(dnsName)) return value
    return `${install.service}.${namespace}${value.slice(dnsName.length)}`
  })
  return JSON.parse(moved) as KubeObject
}
