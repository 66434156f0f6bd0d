import type { V1Lifecycle, V1Probe, V1SecurityContext, V1PodSecurityContext } from '@kubernetes/client-node'
import { listOf } from '../blueprint-view.ts'
import { unless, type Check, type Objection } from './check.ts'

/**
 * The controls of the Pod Security Standard "baseline", in the order of
 * https://kubernetes.io/docs/concepts/security/pod-security-standards/, with the values it allows.
 */

const addableCapabilities = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]

const safeSysctls: ReadonlySet<string> = new Set([
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ping_group_range',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.tcp_wmem',
])

const selinuxTypes = ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']

type SecurityContext = V1SecurityContext | V1PodSecurityContext | undefined | null

function windowsHost(context: SecurityContext): Objection[] {
  return unless([false], 'securityContext.windowsOptions.hostProcess', context?.windowsOptions?.hostProcess)
}

function apparmor(context: SecurityContext): Objection[] {
  return unless(['RuntimeDefault', 'Localhost'], 'securityContext.appArmorProfile.type', context?.appArmorProfile?.type)
}

function seccomp(context: SecurityContext): Objection[] {
  return unless(['RuntimeDefault', 'Localhost'], 'securityContext.seccompProfile.type', context?.seccompProfile?.type)
}

function selinux(context: SecurityContext): Objection[] {
  const options = context?.seLinuxOptions
  return [
    ...unless(selinuxTypes, 'securityContext.seLinuxOptions.type', options?.type),
    ...unless([''], 'securityContext.seLinuxOptions.user', options?.user),
    ...unless([''], 'securityContext.seLinuxOptions.role', options?.role),
  ]
}

/** The annotations that servers before 1.30 (AppArmor) and 1.27 (seccomp) obey. */
function profileAnnotations(annotations: Readonly<Record<string, string>>, prefixes: readonly string[]): Objection[] {
  return Object.entries(annotations)
    .filter(([key]) => prefixes.some((prefix) => key.startsWith(prefix)))
    .filter(([, value]) => !/^($|runtime\/default$|docker\/default$|localhost\/)/.test(value))
    .map(([key, value]) => ({ at: `metadata.annotations['${key}']`, found: `the profile "${value}"` }))
}

function probeHosts(at: string, probe: V1Probe | V1Lifecycle['postStart'] | null | undefined): Objection[] {
  return [
    ...unless([''], `${at}.httpGet.host`, probe?.httpGet?.host),
    ...unless([''], `${at}.tcpSocket.host`, probe?.tcpSocket?.host),
  ]
}

export const baseline: readonly Check[] = [
  {
    level: 'baseline',
    advice: 'Remove hostProcess.',
    pod: ({ spec }) => windowsHost(spec.securityContext),
    container: ({ securityContext }) => windowsHost(securityContext),
  },
  {
    level: 'baseline',
    advice: 'Remove it; a sandbox has namespaces of its own.',
    pod: ({ spec }) =>
      (['hostNetwork', 'hostPID', 'hostIPC'] as const).flatMap((field) => unless([false], field, spec[field])),
  },
  {
    level: 'baseline',
    advice: 'Remove privileged; it lifts every isolation.',
    container: ({ securityContext }) => unless([false], 'securityContext.privileged', securityContext?.privileged),
  },
  {
    level: 'baseline',
    advice: `Add only ${addableCapabilities.join(', ')}.`,
    container: ({ securityContext }) =>
      stringsOf(securityContext?.capabilities?.add).flatMap((capability, i) =>
        addableCapabilities.includes(capability)
          ? []
          : [{ at: `securityContext.capabilities.add[${i}]`, found: `the capability ${capability}` }],
      ),
  },
  {
    level: 'baseline',
    advice: 'Use an emptyDir or a volumeClaimTemplate instead.',
    pod: ({ spec }) =>
      listOf(spec.volumes).flatMap(({ name, hostPath }, i) =>
        hostPath ? [{ at: `volumes[${i}].hostPath`, found: `volume ${name} with hostPath ${hostPath.path}` }] : [],
      ),
  },
  {
    level: 'baseline',
    advice: 'Remove hostPort; the router reaches containers by their own ports.',
    container: (container) =>
      listOf(container.ports).flatMap(({ hostPort }, i) => unless([0], `ports[${i}].hostPort`, hostPort)),
  },
  {
    level: 'baseline',
    advice: 'Remove host; the kubelet then asks the Pod itself.',
    container: ({ livenessProbe, readinessProbe, startupProbe, lifecycle }) => [
      ...probeHosts('livenessProbe', livenessProbe),
      ...probeHosts('readinessProbe', readinessProbe),
      ...probeHosts('startupProbe', startupProbe),
      ...probeHosts('lifecycle.postStart', lifecycle?.postStart),
      ...probeHosts('lifecycle.preStop', lifecycle?.preStop),
    ],
  },
  {
    level: 'baseline',
    advice: 'Use RuntimeDefault or a Localhost profile.',
    pod: ({ spec, annotations }) => [
      ...apparmor(spec.securityContext),
      ...profileAnnotations(annotations, ['container.apparmor.security.beta.kubernetes.io/']),
    ],
    container: ({ securityContext }) => apparmor(securityContext),
  },
  {
    level: 'baseline',
    advice: `Use one of the container types (${selinuxTypes.slice(1).join(', ')}), and no user or role.`,
    pod: ({ spec }) => selinux(spec.securityContext),
    container: ({ securityContext }) => selinux(securityContext),
  },
  {
    level: 'baseline',
    advice: 'Remove procMount, or set it to Default.',
    container: ({ securityContext }) =>
      unless(['Default', ''], 'securityContext.procMount', securityContext?.procMount),
  },
  {
    level: 'baseline',
    advice: 'Use RuntimeDefault or a Localhost profile.',
    pod: ({ spec, annotations }) => [
      ...seccomp(spec.securityContext),
      ...profileAnnotations(annotations, [
        'seccomp.security.alpha.kubernetes.io/pod',
        'container.seccomp.security.alpha.kubernetes.io/',
      ]),
    ],
    container: ({ securityContext }) => seccomp(securityContext),
  },
  {
    level: 'baseline',
    advice: `Set only sysctls of the Pod's own namespaces: ${[...safeSysctls].join(', ')}.`,
    pod: ({ spec }) =>
      listOf(spec.securityContext?.sysctls).flatMap(({ name }, i) =>
        safeSysctls.has((name ?? '').replaceAll('/', '.'))
          ? []
          : [{ at: `securityContext.sysctls[${i}].name`, found: `the sysctl ${name}` }],
      ),
  },
]

function stringsOf(value: readonly string[] | null | undefined): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}
