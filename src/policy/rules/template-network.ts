import { nameHash } from '../../api/hash.ts'
import type { LabelSelector, NetworkPolicyPeer } from '../../api/schema.ts'
import { annotations, labels } from '../../api/vocabulary.ts'
import { coverage, overlaps, parseCidr, subtract, type AddressRange } from '../address-ranges.ts'
import { blueprintOf, initAndMainOf, listOf } from '../blueprint-view.ts'
import { isNetworkClosed } from '../secure-defaults.ts'
import type { Rule, Violation } from '../rule.ts'

const shared = {
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'warn',
} as const

/** Private and link-local ranges (RFC 1918, 3927, 4193, 4291); cloud metadata services live in the link-local ones. */
const privateRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', 'fc00::/7', 'fe80::/10']
const ranges = (cidrs: readonly string[]) =>
  cidrs.flatMap((cidr) => {
    const range = parseCidr(cidr)
    return range ? [{ cidr, range }] : []
  })
const wholeInternet = ranges(['0.0.0.0/0', '2000::/3'])

/** Custom rules are the author's right; the warning says what they open, since allowing is what rules add up to. */
export const networkOpen: Rule<'SandboxTemplate'> = {
  ...shared,
  id: 'template/network-open',
  kinds: ['SandboxTemplate'],
  refuses: 'No managed network policy, egress to private or metadata addresses, or ingress from anywhere.',
  why: 'Code in a sandbox could reach the services of the cluster or the credentials of its node.',
  relax: 'Set rules: {template/network-open: off} in the configuration.',
  check({ object }): Violation[] {
    const { networkPolicyManagement, networkPolicy } = object.spec
    if (networkPolicyManagement === 'Unmanaged') {
      const message =
        'Unmanaged leaves sandboxes with no policy but your own. Make sure that one selects them, or use Managed.'
      return [{ field: 'spec.networkPolicyManagement', message }]
    }
    const egress = listOf(networkPolicy?.egress).flatMap(({ to }, i) =>
      reachedFrom(to).map((what) => ({
        field: `spec.networkPolicy.egress[${i}].to`,
        message: `it lets sandboxes reach ${what}. Add an except for it, or name the addresses that are meant.`,
      })),
    )
    const peers = listOf(networkPolicy?.ingress).map(({ from }) => from)
    const isOpen =
      peers.some((from) => isEveryone(from)) ||
      wholeInternet.some(({ range }) => coverage(peers.flatMap(blocksOf), range) * 2n > range.last - range.first + 1n)
    const message = 'it lets in connections from anywhere. Name the peers that are meant.'
    return isOpen ? [...egress, { field: 'spec.networkPolicy.ingress', message }] : egress
  },
}

/** No peers at all, or every Pod of the cluster, is everyone. */
function isEveryone(peers: readonly NetworkPolicyPeer[] | undefined): boolean {
  return listOf(peers).length === 0 || listOf(peers).some((peer) => isEveryPod(peer))
}

function isEveryPod({ namespaceSelector, podSelector }: NetworkPolicyPeer): boolean {
  return namespaceSelector !== undefined && selectsAll(namespaceSelector) && (!podSelector || selectsAll(podSelector))
}

function selectsAll({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return Object.keys(matchLabels ?? {}).length === 0 && listOf(matchExpressions).length === 0
}

function reachedFrom(peers: readonly NetworkPolicyPeer[] | undefined): string[] {
  if (listOf(peers).length === 0) return ['every address, private and metadata ones included']
  const blocks = blocksOf(peers)
  const reached = ranges(privateRanges)
    .filter(({ range }) => blocks.some((block) => overlaps(block, range)))
    .map(({ cidr }) => cidr)
  return [
    ...(listOf(peers).some((peer) => isEveryPod(peer)) ? ['every Pod of the cluster'] : []),
    ...(reached.length > 0 ? [`addresses in ${reached.join(', ')}`] : []),
  ]
}

function blocksOf(peers: readonly NetworkPolicyPeer[] | undefined): AddressRange[] {
  return listOf(peers).flatMap(({ ipBlock }) => {
    const block = ipBlock && parseCidr(ipBlock.cidr)
    return block
      ? subtract(
          block,
          ranges(ipBlock.except ?? []).map(({ range }) => range),
        )
      : []
  })
}

/** A policy that is not ours is never overwritten, so the sandboxes would be without one. */
export const networkNameTaken: Rule<'SandboxTemplate' | 'SandboxSet'> = {
  ...shared,
  id: 'template/network-name-taken',
  kinds: ['SandboxTemplate', 'SandboxSet'],
  refuses: 'A template whose NetworkPolicy would have the name of one that exists and is not ours.',
  why: "Someone else's policy is never overwritten, so the sandboxes would be without their own.",
  relax: 'Rename or delete that NetworkPolicy.',
  check({ kind, object }, { facts }) {
    if (facts.networkPolicy?.kind !== 'found') return []
    const policy = facts.networkPolicy.value
    const templateRef = kind === 'SandboxSet' ? `SandboxSet/${object.metadata.name}` : (object.metadata.name ?? '')
    // Ours bears the template's name; one that an older controller made at least selects its sandboxes.
    const isOurs =
      policy.metadata.annotations?.[annotations.templateRef] === templateRef ||
      policy.spec?.podSelector?.matchLabels?.[labels.templateRefHash] === nameHash(templateRef)
    if (isOurs) return []
    const message = `NetworkPolicy ${policy.metadata.name} exists and is not this one's; it stays, and sandboxes get no other. Rename one of the two.`
    return [{ field: 'metadata.name', message }]
  },
}

/** The default policy lets in the router alone, so a mesh proxy or an exporter beside the main container is cut off. */
export const sidecarPorts: Rule<'SandboxTemplate'> = {
  ...shared,
  id: 'template/sidecar-ports',
  kinds: ['SandboxTemplate'],
  refuses: 'Ports of sidecars that no ingress rule opens.',
  why: 'Ingress is denied by default, so their health checks and scrapes fail.',
  relax: 'Open the port under networkPolicy.ingress, or remove it from the container.',
  check({ object }) {
    const { networkPolicyManagement, networkPolicy, podTemplate } = object.spec
    if (networkPolicyManagement === 'Unmanaged') return []
    const ingress = isNetworkClosed(object.spec) ? [] : listOf(networkPolicy?.ingress)
    const { path } = blueprintOf(object)
    const [, ...sidecars] = initAndMainOf(podTemplate.spec).filter(({ at }) => at.startsWith('containers'))
    return sidecars.flatMap(({ at, container }) =>
      listOf(container.ports).flatMap(({ containerPort, name, protocol = 'TCP' }, i): Violation[] => {
        const isOpened = ingress.some(
          ({ ports }) =>
            listOf(ports).length === 0 ||
            listOf(ports).some(
              (open) =>
                (open.protocol ?? 'TCP') === protocol &&
                (open.port === undefined ||
                  open.port === name ||
                  isInPortRange(containerPort, open.port, open.endPort)),
            ),
        )
        if (isOpened) return []
        const message = `nothing is let in to port ${containerPort} of container ${container.name}, as ingress is denied by default. Open it under networkPolicy.ingress if something should connect.`
        return [{ field: `${path}.spec.${at}.ports[${i}].containerPort`, message }]
      }),
    )
  },
}

function isInPortRange(port: number, first: unknown, last: number | undefined): boolean {
  return typeof first === 'number' && port >= first && port <= (last ?? first)
}
