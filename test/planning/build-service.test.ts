import type { V1ContainerPort } from '@kubernetes/client-node'
import t from 'tap'
import { nameHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { buildService, serviceFQDN, servicePatch } from '../../src/planning/build-service.ts'
import { aSandbox, serviceOf } from './sandbox-fixtures.ts'

const listening = (...ports: V1ContainerPort[][]) =>
  aSandbox({
    spec: {
      podTemplate: { spec: { containers: ports.map((each, i) => ({ name: `c${i}`, image: 'x', ports: each })) } },
    },
  })
const portsOf = (...ports: V1ContainerPort[][]) => buildService(listening(...ports)).spec?.ports ?? []

t.test('the Service is headless, has the name of its sandbox and selects its Pod', async (t) => {
  const selector = { [labels.sandboxNameHash]: nameHash('box') }
  t.match(buildService(aSandbox()), {
    metadata: {
      name: 'box',
      namespace: 'ns',
      labels: selector,
      ownerReferences: [{ uid: 'box-uid', controller: true }],
    },
    spec: { clusterIP: 'None', selector },
  })
})

t.test('ports of all containers are listed once per number and protocol', async (t) => {
  const http = { containerPort: 8080, name: 'http' }
  t.same(portsOf([http], [{ containerPort: 8080 }, { containerPort: 8080, protocol: 'UDP' }]), [
    { name: 'http', port: 8080, protocol: 'TCP', targetPort: 8080 },
    { name: 'p-8080-udp', port: 8080, protocol: 'UDP', targetPort: 8080 },
  ])
})

t.test('a port without a name is called by its number and protocol', async (t) => {
  t.match(portsOf([{ containerPort: 53, protocol: 'UDP' }]), [{ name: 'p-53-udp' }])
})

t.test('the second port of a name is called as if it had none, since names are unique in a Service', async (t) => {
  const names = portsOf([{ containerPort: 80, name: 'web' }], [{ containerPort: 81, name: 'web' }]).map((p) => p.name)
  t.same(names, ['web', 'p-81-tcp'])
})

t.test('init containers that keep running are listed, those that end are not', async (t) => {
  const initContainers = [
    { name: 'sidecar', image: 'x', restartPolicy: 'Always', ports: [{ containerPort: 9090 }] },
    { name: 'setup', image: 'x', ports: [{ containerPort: 7070 }] },
  ]
  const spec = { podTemplate: { spec: { containers: [{ name: 'main', image: 'x' }], initContainers } } }
  t.match(buildService(aSandbox({ spec })).spec?.ports, [{ port: 9090 }])
})

t.test('a Service in line needs no patch, also with what the server filled in', async (t) => {
  const sandbox = listening([{ containerPort: 8080 }])
  const service = serviceOf(sandbox)
  t.equal(servicePatch(service, sandbox), undefined)
  const ports = [{ name: 'p-8080-tcp', port: 8080 }]
  t.equal(servicePatch({ ...service, spec: { ...service.spec, ports } }, sandbox), undefined)
})

t.test('a port that was added to the sandbox, and a foreign selector, are put right', async (t) => {
  const service = { ...serviceOf(listening([])), spec: { selector: { app: 'evil' } } }
  t.match(servicePatch(service, listening([{ containerPort: 8080 }])), {
    metadata: { uid: 'Service-uid', resourceVersion: '30' },
    spec: { selector: { app: null, [labels.sandboxNameHash]: nameHash('box') }, ports: [{ port: 8080 }] },
  })
})

t.test('the full name ends in the domain of the cluster', async (t) => {
  t.equal(serviceFQDN(buildService(aSandbox()), 'corp.local'), 'box.ns.svc.corp.local')
})
