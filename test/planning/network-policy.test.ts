import t from 'tap'
import type { NetworkPolicy } from '../../src/api/core.ts'
import { nameHash } from '../../src/api/hash.ts'
import type { SandboxTemplate } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import {
  buildNetworkPolicy,
  closedNetworkPolicy,
  identitiesOfPolicy,
  isOwnPolicy,
  networkPolicyName,
  networkPolicyPatch,
  type NetworkPolicySpec,
} from '../../src/planning/network-policy.ts'
import { sameRules } from '../../src/planning/network-rules-form.ts'
import { planNetworkPolicy, type NetworkPolicyView } from '../../src/planning/plan-network-policy.ts'
import { mergePatched } from '../support/merge-patch.ts'

const identity = { namespace: 'ns', templateRef: 'python' }
const templateWith = (spec: Partial<SandboxTemplate['spec']> = {}): SandboxTemplate => ({
  metadata: { name: 'python', namespace: 'ns', uid: 'template-uid' },
  spec: { podTemplate: { spec: { containers: [] } }, ...spec },
})
const stored = (policy: NetworkPolicy, metadata = {}): NetworkPolicy => ({
  ...policy,
  metadata: { ...policy.metadata, uid: 'np-uid', resourceVersion: '7', ...metadata },
})
const wanted = buildNetworkPolicy(identity, templateWith(), defaultConfig)
const controller = (kind: string, name: string) => ({ apiVersion: 'v1', kind, name, uid: 'u', controller: true })

t.test('the secure default lets in the router alone and out to the internet alone', async (t) => {
  t.same(wanted.spec, {
    podSelector: { matchLabels: { [labels.templateRefHash]: nameHash('python') } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      {
        from: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'agent-sandbox-system' } },
            podSelector: { matchLabels: { app: 'sandbox-router' } },
          },
        ],
      },
    ],
    egress: [
      {
        to: [
          {
            ipBlock: {
              cidr: '0.0.0.0/0',
              except: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'],
            },
          },
          { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } },
        ],
      },
    ],
  })
})

t.test('the router namespace and further blocked ranges come from the configuration', async (t) => {
  const network = { routerNamespace: 'edge', extraBlockedCIDRs: ['100.64.0.0/10', '2001:db8::/32', '10.0.0.0/8'] }
  const { spec } = buildNetworkPolicy(identity, templateWith(), { ...defaultConfig, network })
  t.match(spec?.ingress?.[0]?.from?.[0]?.namespaceSelector, { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } })
  const [v4, v6] = spec?.egress?.[0]?.to ?? []
  t.same(v4?.ipBlock?.except?.slice(-1), ['100.64.0.0/10'], 'a range that is blocked anyway is listed once')
  t.same(v6?.ipBlock?.except?.slice(-1), ['2001:db8::/32'])
})

t.test('custom rules replace the default ones; selector and policy types stay ours', async (t) => {
  const egress = [{ to: [{ ipBlock: { cidr: '203.0.113.0/24' } }] }]
  const { spec } = buildNetworkPolicy(identity, templateWith({ networkPolicy: { egress } }), defaultConfig)
  t.same([spec?.ingress, spec?.egress, spec?.policyTypes], [[], egress, ['Ingress', 'Egress']])
  t.same(spec?.podSelector, wanted.spec?.podSelector)
})

t.test('the policy has no owner that could take it along, and says whose it is', async (t) => {
  t.equal(wanted.metadata.ownerReferences, undefined)
  t.equal(wanted.metadata.annotations?.[annotations.templateRef], 'python')
})

t.test('names are <template>-network-policy and <set>-set-network-policy', async (t) => {
  t.equal(networkPolicyName(identity), 'python-network-policy')
  t.equal(networkPolicyName({ namespace: 'ns', templateRef: 'SandboxSet/py' }), 'py-set-network-policy')
})

t.test('a policy wakes every template that could want its name', async (t) => {
  const refs = (name: string) =>
    identitiesOfPolicy({ metadata: { name, namespace: 'ns' } }).map((each) => each.templateRef)
  t.same(refs('py-set-network-policy'), ['py-set', 'SandboxSet/py'])
  t.same(refs('py-network-policy'), ['py'])
  t.same(refs('deny-all'), [])
})

t.test('a policy is ours by its marks or by what it selects, never when something else controls it', async (t) => {
  const bare = stored(wanted, { labels: {}, annotations: {} })
  const others: NetworkPolicySpec = { podSelector: {} }
  t.equal(isOwnPolicy(stored(wanted), identity), true)
  t.equal(isOwnPolicy(bare, identity), true, 'its marks were edited away')
  t.equal(isOwnPolicy({ ...stored(wanted), spec: others }, identity), true, 'its selector was edited')
  t.equal(isOwnPolicy({ ...bare, spec: others }, identity), false)
  const ownedBy = (kind: string, name: string) => stored(wanted, { ownerReferences: [controller(kind, name)] })
  t.equal(isOwnPolicy(ownedBy('SandboxTemplate', 'python'), identity), true, 'made by another implementation')
  t.equal(isOwnPolicy(ownedBy('Firewall', 'python'), identity), false)
  t.equal(isOwnPolicy(stored(wanted), { namespace: 'ns', templateRef: 'SandboxSet/python' }), false)
})

t.test('order, defaults that the server fills in, and empty lists make no drift', async (t) => {
  const rule = { from: [{ podSelector: { matchLabels: { a: '1' } } }, { ipBlock: { cidr: '1.0.0.0/8', except: [] } }] }
  const one: NetworkPolicySpec = {
    podSelector: { matchLabels: { x: 'y' } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [rule, { ports: [{ port: 80 }] }],
  }
  const other: NetworkPolicySpec = {
    podSelector: { matchLabels: { x: 'y' }, matchExpressions: [] },
    policyTypes: ['Egress', 'Ingress'],
    ingress: [{ from: [], ports: [{ port: 80, protocol: 'TCP' }] }, { from: rule.from.toReversed() }],
    egress: [],
  }
  t.equal(sameRules(one, other), true)
})

t.test('what allows other traffic is drift', async (t) => {
  const base: NetworkPolicySpec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [] }
  const changes: Record<string, Partial<NetworkPolicySpec>> = {
    'a rule that allows all': { ingress: [{}] },
    'another selector': { podSelector: { matchLabels: { a: 'b' } } },
    'a missing policy type': { policyTypes: ['Ingress'] },
    'an egress rule': { egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }] },
  }
  for (const [why, change] of Object.entries(changes)) t.equal(sameRules(base, { ...base, ...change }), false, why)
  const peers = (from: NonNullable<NetworkPolicySpec['ingress']>[number]['from'] & {}) => ({
    ...base,
    ingress: [{ from }],
  })
  const pods = { matchLabels: { a: 'b' } }
  t.equal(
    sameRules(peers([{ podSelector: pods }]), peers([{ podSelector: pods, namespaceSelector: {} }])),
    false,
    'an empty namespace selector is every namespace, an absent one the own',
  )
  t.equal(sameRules(peers([{ namespaceSelector: pods }]), peers([{ namespaceSelector: pods, podSelector: {} }])), true)
})

t.test('a repair leads to what is wanted, from any edit, and then has nothing left to do', async (t) => {
  const edits: Record<string, NetworkPolicy> = {
    'wider selector': { ...stored(wanted), spec: { ...wanted.spec, podSelector: { matchLabels: { other: '1' } } } },
    'expressions in the selector': {
      ...stored(wanted),
      spec: { ...wanted.spec, podSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
    },
    'no marks': stored(wanted, { labels: { team: 'x' }, annotations: {} }),
    'an owner': stored(wanted, { ownerReferences: [controller('SandboxTemplate', 'python')] }),
    open: { ...stored(wanted), spec: { ...wanted.spec, podSelector: wanted.spec?.podSelector ?? {}, ingress: [{}] } },
  }
  for (const [why, edited] of Object.entries(edits)) {
    const patch = networkPolicyPatch(edited, wanted)
    t.match(patch, { metadata: { uid: 'np-uid', resourceVersion: '7' } }, why)
    const repaired = mergePatched(edited, patch)
    t.equal(networkPolicyPatch(repaired, wanted), undefined, `${why}, once repaired`)
  }
})

t.test('a policy that allows nothing stands in for rules that the server refuses', async (t) => {
  const { spec } = closedNetworkPolicy(identity)
  t.same([spec?.ingress, spec?.egress, spec?.policyTypes], [[], [], ['Ingress', 'Egress']])
})

const noon = Date.parse('2030-01-01T12:00:00Z')
const plan = (view: Partial<NetworkPolicyView>, now = noon) =>
  planNetworkPolicy(
    {
      identity,
      template: templateWith(),
      policy: stored(wanted),
      isInUse: true,
      unusedSince: undefined,
      config: defaultConfig,
      ...view,
    },
    now,
  )
const foreign: NetworkPolicy = {
  metadata: { name: 'python-network-policy', namespace: 'ns', uid: 'theirs' },
  spec: { podSelector: {} },
}

t.test("1: someone else's policy of the name is left alone, and said to be in the way", async (t) => {
  t.match(plan({ policy: foreign }), { kind: 'taken', message: /python-network-policy/ })
})

t.test('1: it is in nobody’s way when the template wants none or is gone', async (t) => {
  t.same(plan({ policy: foreign, template: templateWith({ networkPolicyManagement: 'Unmanaged' }) }), { kind: 'keep' })
  t.same(plan({ policy: foreign, template: undefined, isInUse: false, unusedSince: 0 }), { kind: 'keep' })
})

t.test('2: the policy of a deleted template stays while sandboxes need it', async (t) => {
  t.match(plan({ template: undefined }), { kind: 'wait', isUnused: false })
})

t.test('2: after its last use it stays for a grace time, then goes', async (t) => {
  const unused = { template: undefined, isInUse: false }
  t.same(plan(unused), { kind: 'wait', forMs: 15_000, isUnused: true })
  t.same(plan({ ...unused, unusedSince: noon }, noon + 10_000), { kind: 'wait', forMs: 5_000, isUnused: true })
  t.match(plan({ ...unused, unusedSince: noon }, noon + 15_000), { kind: 'delete', because: 'unused' })
})

t.test('2: a template that is gone and has no policy needs nothing', async (t) => {
  t.same(plan({ template: undefined, policy: undefined }), { kind: 'keep' })
})

t.test('3: Unmanaged deletes ours at once', async (t) => {
  const template = templateWith({ networkPolicyManagement: 'Unmanaged' })
  t.match(plan({ template }), { kind: 'delete', because: 'unmanaged' })
  t.same(plan({ template, policy: undefined }), { kind: 'keep' })
})

t.test('4: Managed creates the policy, keeps one in order, and repairs one that drifted', async (t) => {
  t.match(plan({ policy: undefined }), { kind: 'create', object: wanted })
  t.same(plan({}), { kind: 'keep' })
  t.equal(plan({ template: templateWith({ networkPolicy: {} }) }).kind, 'repair')
})
