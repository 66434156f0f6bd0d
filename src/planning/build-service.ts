import type { V1ServicePort, V1ServiceSpec } from '@kubernetes/client-node'
import { canonicalJson } from '../api/hash.ts'
import type { Service } from '../api/core.ts'
import type { Sandbox } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { keysPatch } from './carried-metadata.ts'
import { nameOf, sandboxNameHash, sandboxOwner } from './sandbox-identity.ts'

/** The headless Service of a Sandbox: a DNS name for its Pod, under the Sandbox's own name. */
export function buildService(sandbox: Sandbox): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: nameOf(sandbox),
      namespace: sandbox.metadata.namespace ?? '',
      labels: { [labels.sandboxNameHash]: sandboxNameHash(sandbox) },
      ownerReferences: [sandboxOwner(sandbox)],
    },
    spec: { clusterIP: 'None', selector: serviceSelector(sandbox), ports: servicePorts(sandbox) },
  }
}

/** The merge patch that puts an existing Service's selector and ports right, or undefined when they are. */
export function servicePatch(service: Service, sandbox: Sandbox): object | undefined {
  const selector = serviceSelector(sandbox)
  const ports = servicePorts(sandbox)
  const isInLine = meaning(service.spec?.selector, service.spec?.ports) === meaning(selector, ports)
  if (isInLine) return undefined
  const { uid, resourceVersion } = service.metadata
  const present = service.spec?.selector ?? {}
  return {
    metadata: { uid, resourceVersion },
    spec: { selector: keysPatch(present, selector, Object.keys(present)), ports },
  }
}

/** Name under which the Pod is reached inside the cluster. */
export function serviceFQDN(service: Service, clusterDomain: string): string {
  return `${nameOf(service)}.${service.metadata.namespace}.svc.${clusterDomain}`
}

function serviceSelector(sandbox: Sandbox): Record<string, string> {
  return { [labels.sandboxNameHash]: sandboxNameHash(sandbox) }
}

/**
 * Every port that a container declares, once per number and protocol. Port names are unique within one container only,
 * but must be unique in a Service, so the second of a name is called like one without: `p-8080-tcp`.
 */
function servicePorts(sandbox: Sandbox): V1ServicePort[] {
  const { containers, initContainers = [] } = sandbox.spec.podTemplate.spec
  const sidecars = initContainers.filter((container) => container.restartPolicy === 'Always')
  const ports = new Map<string, V1ServicePort>()
  const taken = new Set<string>()
  for (const { name, containerPort, protocol = 'TCP' } of [...containers, ...sidecars].flatMap((c) => c.ports ?? [])) {
    const key = `p-${containerPort}-${protocol.toLowerCase()}`
    if (ports.has(key)) continue
    const portName = name === undefined || taken.has(name) ? key : name
    taken.add(portName)
    ports.set(key, { name: portName, port: containerPort, protocol, targetPort: containerPort })
  }
  return [...ports.values()]
}

/** Two Services with the same text here mean the same, whatever the server filled in. */
function meaning(selector: V1ServiceSpec['selector'], ports: readonly V1ServicePort[] = []): string {
  const essentials = ports.map(({ name, port, protocol = 'TCP', targetPort = port }) => [
    name,
    port,
    protocol,
    targetPort,
  ])
  return canonicalJson({ selector: selector ?? {}, ports: essentials })
}
