import type { RunFiles } from './run-folder.ts'

/** What the command lines of one run have in common. */
export interface FlagOptions {
  readonly files: RunFiles
  /** Minor version of the control plane, for flags that came or went. */
  readonly minorVersion: number
  readonly apiServerPort: number
  readonly etcdPort: number
  /** Whether the API server writes an audit log. */
  readonly audit: boolean
  /** Whether anybody makes service accounts. */
  readonly hasControllerManager: boolean
  /** Each controller of the controller manager speaks as its own service account, as in a real cluster. */
  readonly serviceAccountCredentials: boolean
}

/** Cluster IPs: a /16, since every Service of a big run may want one. */
export const serviceRange = '10.0.0.0/16'
/** The first address of {@link serviceRange}: the `kubernetes` Service. */
export const serviceAddress = '10.0.0.1'

export function etcdFlags({ files, etcdPort }: FlagOptions): string[] {
  const url = `http://127.0.0.1:${etcdPort}`
  return [
    `--data-dir=${files.etcdData}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    // Nobody joins; any port will do.
    '--listen-peer-urls=http://127.0.0.1:0',
    // Not in 3.4's help, but there. The data does not have to survive the machine.
    '--unsafe-no-fsync',
    '--logger=zap',
    '--log-level=warn',
  ]
}

export function apiServerFlags(options: FlagOptions): string[] {
  const { files, minorVersion } = options
  return [
    `--etcd-servers=http://127.0.0.1:${options.etcdPort}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${options.apiServerPort}`,
    `--tls-cert-file=${files.serverCertificate}`,
    `--tls-private-key-file=${files.serverKey}`,
    `--client-ca-file=${files.caCertificate}`,
    `--service-cluster-ip-range=${serviceRange}`,
    // A loopback address is not a valid endpoint of the `kubernetes` Service: do not try.
    '--endpoint-reconciler-type=none',

    '--authorization-mode=RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.serviceAccountKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    // Added to the defaults, which hold ServiceAccount, ResourceQuota and both webhook plugins.
    '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
    // It refuses Pods whose service account is not there, and nobody makes one.
    ...(options.hasControllerManager ? [] : ['--disable-admission-plugins=ServiceAccount']),
    // What may be privileged is for the product to say.
    '--allow-privileged=true',
    // On by default from 1.23.
    ...(minorVersion < 23 ? ['--feature-gates=EphemeralContainers=true'] : []),
    ...(options.audit
      ? [
          `--audit-policy-file=${files.auditPolicy}`,
          `--audit-log-path=${files.auditLog}`,
          // A request is in the log before its reply is complete, so that a test can count what it has waited for.
          '--audit-log-mode=blocking',
          '--audit-log-maxsize=0',
        ]
      : []),
    '--profiling=false',
  ]
}

export function controllerManagerFlags({ files, minorVersion, serviceAccountCredentials }: FlagOptions): string[] {
  return [
    `--kubeconfig=${files.controllerManagerKubeconfig}`,
    `--use-service-account-credentials=${serviceAccountCredentials}`,
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.caCertificate}`,
    ...servingNothing(minorVersion, 24),
    // The default of 20 requests a second would be the bottleneck of every test that deletes a namespace.
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
    // Simulated nodes say once that they are ready and renew nothing.
    '--node-monitor-grace-period=8760h',
    '--node-startup-grace-period=8760h',
  ]
}

export function schedulerFlags({ files, minorVersion }: FlagOptions): string[] {
  return [
    `--kubeconfig=${files.schedulerKubeconfig}`,
    ...servingNothing(minorVersion, 23),
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ]
}

/** Alone, so no election; no port of its own, so nothing to collide with. `--port` is gone from `portGoneIn` on. */
function servingNothing(minorVersion: number, portGoneIn: number): string[] {
  return ['--leader-elect=false', '--secure-port=0', ...(minorVersion < portGoneIn ? ['--port=0'] : [])]
}
