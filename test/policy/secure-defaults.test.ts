import type { V1PodSpec } from '@kubernetes/client-node'
import * as fc from 'fast-check'
import t from 'tap'
import { applySecureDefaults } from '../../src/policy/secure-defaults.ts'
import { configWith } from './subjects.ts'

const config = configWith(() => {})
const plain: V1PodSpec = { containers: [{ name: 'main' }] }
const resolvers = ['8.8.8.8', '1.1.1.1']

t.test('a sandbox of a template with the default network gets everything', async (t) => {
  t.same(applySecureDefaults(plain, { template: {}, config }), {
    containers: [{ name: 'main' }],
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    dnsPolicy: 'None',
    dnsConfig: { nameservers: resolvers },
  })
})

t.test('the resolvers come only with the default network', async (t) => {
  const dnsOf = (template: Parameters<typeof applySecureDefaults>[1]['template']) =>
    applySecureDefaults(plain, { template, config }).dnsPolicy
  t.equal(dnsOf(undefined), undefined, 'a stand-alone Sandbox')
  t.equal(dnsOf({ networkPolicyManagement: 'Unmanaged' }), undefined)
  t.equal(dnsOf({ networkPolicy: {} }), undefined)
  t.equal(dnsOf({ networkPolicyManagement: 'Managed' }), 'None')
})

t.test('what the author set stays', async (t) => {
  const spec: V1PodSpec = {
    ...plain,
    automountServiceAccountToken: true,
    enableServiceLinks: true,
    dnsPolicy: 'ClusterFirst',
    securityContext: { runAsUser: 5, seccompProfile: { type: 'Unconfined' } },
  }
  t.same(applySecureDefaults(spec, { template: {}, config }), spec)
})

t.test('an author who configures DNS without a policy keeps his resolvers and options', async (t) => {
  const own = { ...plain, dnsConfig: { nameservers: ['9.9.9.9'], searches: ['example.com'] } }
  t.same(applySecureDefaults(own, { template: {}, config }).dnsConfig, own.dnsConfig)
  const options = { ...plain, dnsConfig: { options: [{ name: 'ndots', value: '1' }] } }
  t.same(applySecureDefaults(options, { template: {}, config }).dnsConfig, {
    ...options.dnsConfig,
    nameservers: resolvers,
  })
})

t.test('service links and seccomp can be left alone by configuration', async (t) => {
  const off = configWith((c) => {
    c.sandboxes.enableServiceLinksDefault = false
    c.sandboxes.seccompDefault = false
  })
  t.same(applySecureDefaults(plain, { template: undefined, config: off }), {
    ...plain,
    automountServiceAccountToken: false,
  })
})

t.test('a Windows Pod gets no seccomp profile, which the API server would refuse', async (t) => {
  const windows = applySecureDefaults({ ...plain, os: { name: 'windows' } }, { template: undefined, config })
  t.equal(windows.securityContext, undefined)
})

t.test('applying them twice changes nothing more, and never changes the argument', async (t) => {
  const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
  const spec = fc.record(
    {
      containers: fc.constant([{ name: 'main' }]),
      automountServiceAccountToken: optional(fc.boolean()),
      enableServiceLinks: optional(fc.boolean()),
      dnsPolicy: optional(fc.constantFrom('None', 'Default', '')),
      dnsConfig: optional(
        fc.record(
          { nameservers: optional(fc.array(fc.constant('9.9.9.9'), { maxLength: 1 })) },
          { noNullPrototype: true },
        ),
      ),
      securityContext: optional(fc.record({ runAsUser: optional(fc.nat()) }, { noNullPrototype: true })),
    },
    { noNullPrototype: true },
  ) as fc.Arbitrary<V1PodSpec>
  const template = fc.constantFrom(undefined, {}, { networkPolicy: {} })
  fc.assert(
    fc.property(spec, template, (given, from) => {
      const before = structuredClone(given)
      const once = applySecureDefaults(given, { template: from, config })
      t.strictSame(given, before)
      t.strictSame(applySecureDefaults(once, { template: from, config }), once)
    }),
    { numRuns: 50 },
  )
})
