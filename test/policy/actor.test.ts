import t from 'tap'
import { actorOf } from '../../src/policy/actor.ts'
import { configWith } from './subjects.ts'

const config = configWith((c) => {
  c.admission.trustedUsers = ['system:serviceaccount:velero:velero']
  c.admission.breakGlassGroup = 'emergency'
})

const rows: [string, string[], string][] = [
  ['system:serviceaccount:sandgate-system:sandgate', [], 'controller'],
  ['system:serviceaccount:kube-system:generic-garbage-collector', [], 'collector'],
  ['system:serviceaccount:kube-system:namespace-controller', [], 'collector'],
  ['system:kube-controller-manager', [], 'collector'],
  ['system:serviceaccount:velero:velero', [], 'trusted'],
  ['alice', ['emergency'], 'break-glass'],
  ['alice', ['system:masters'], 'user'],
  ['system:serviceaccount:default:sandgate', ['system:serviceaccounts'], 'user'],
  ['system:serviceaccount:kube-system:replicaset-controller', [], 'user'],
  ['system:serviceaccount:sandgate-system:sandgate', ['emergency'], 'controller'],
]

for (const [username, groups, actor] of rows) {
  t.test(`${username} in [${groups.join()}] is ${actor}`, async (t) => {
    t.equal(actorOf({ username, groups }, config), actor)
  })
}

t.test('without a break-glass group nobody breaks glass', async (t) => {
  t.equal(
    actorOf(
      { username: 'alice', groups: ['emergency'] },
      configWith(() => {}),
    ),
    'user',
  )
})
