import t from 'tap'
import type { Pod } from '../../src/api/core.ts'
import { podState } from '../../src/planning/pod-state.ts'
import { sandboxStatus, statusChange, statusPatch } from '../../src/planning/sandbox-status.ts'
import { aPod, aSandbox, at, noon, running } from './sandbox-fixtures.ts'

const pod = (status: NonNullable<Pod['status']>, metadata = {}) => aPod(aSandbox(), { status, metadata })
const image = { image: 'nope:0', imageID: '', restartCount: 0, ready: false }

t.test('a Pod is ready when it runs, says so, and has an address', async (t) => {
  t.equal(podState(pod(running)).kind, 'ready')
  t.match(podState(pod({ ...running, podIPs: [], podIP: '' })), { kind: 'notReady', because: /no IP address/ })
  t.match(podState(pod({ ...running, conditions: [] })), { kind: 'notReady', because: /not ready/ })
  t.match(podState(pod({ ...running, phase: 'Pending' })), { kind: 'notReady', because: /is Pending/ })
  t.match(podState(pod(running, { deletionTimestamp: at(0) })), { kind: 'notReady', because: /being deleted/ })
})

t.test('what keeps a Pod from being ready is told in its own words', async (t) => {
  const rows: [string, NonNullable<Pod['status']>, RegExp][] = [
    [
      'a node was not found',
      { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes fit' }] },
      /Unschedulable, 0\/3 nodes fit/,
    ],
    [
      'an image cannot be pulled',
      {
        containerStatuses: [
          { name: 'main', ...image, state: { waiting: { reason: 'ImagePullBackOff', message: '10s' } } },
        ],
      },
      /container main \(image nope:0\) is waiting, ImagePullBackOff\.$/,
    ],
    [
      'an init container fails',
      {
        initContainerStatuses: [{ name: 'setup', ...image, state: { terminated: { exitCode: 3, reason: 'Error' } } }],
      },
      /container setup ended with exit code 3, Error/,
    ],
    [
      'a probe does not pass',
      { phase: 'Running', containerStatuses: [{ name: 'main', ...image, state: { running: {} } }] },
      /container main is running but not ready/,
    ],
  ]
  for (const [why, status, message] of rows) t.match(podState(pod(status)), { kind: 'notReady', because: message }, why)
})

t.test('a Pod that has ended says how', async (t) => {
  t.match(podState(pod({ phase: 'Succeeded' })), { kind: 'succeeded' })
  t.match(podState(pod({ phase: 'Failed', reason: 'Evicted' })), { kind: 'failed', because: /Evicted/ })
  const containerStatuses = [{ name: 'main', ...image, state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }]
  t.match(podState(pod({ phase: 'Failed', containerStatuses })), { kind: 'failed', because: /OOMKilled/ })
})

const observe = (status: NonNullable<Pod['status']>) =>
  sandboxStatus(
    {
      sandbox: aSandbox(),
      situation: { kind: 'running', missing: [] },
      pod: pod(status),
      service: undefined,
      podUID: 'pod-uid',
      clusterDomain: 'cluster.local',
    },
    noon,
  )

t.test('every address of the Pod is published, the primary first', async (t) => {
  t.same(observe({ ...running, podIPs: [{ ip: '10.0.0.7' }, { ip: 'fd00::7' }] }).podIPs, ['10.0.0.7', 'fd00::7'])
  t.same(observe({ phase: 'Running', podIP: '10.0.0.8' }).podIPs, ['10.0.0.8'])
})

t.test('only what someone acts on is a real change', async (t) => {
  const ready = observe(running)
  const pending = observe({ phase: 'Pending' })
  t.equal(statusChange(ready, ready), 'none')
  t.equal(statusChange(undefined, pending), 'minor', 'the first words about a sandbox being set up')
  t.equal(statusChange(pending, { ...pending, nodeName: 'node-1' }), 'minor')
  t.equal(statusChange(pending, ready), 'real')
  t.equal(statusChange(ready, pending), 'real')
  t.equal(statusChange(pending, { ...pending, podIPs: ['10.0.0.7'] }), 'real')
  t.equal(statusChange(ready, observe({ phase: 'Succeeded' })), 'real')
})

t.test('the patch holds what changed, removes what is gone, and names the version it rests on', async (t) => {
  const before = { ...observe(running), service: 'box' }
  const { service: _gone, ...after } = { ...before, nodeName: 'node-2' }
  t.same(statusPatch(aSandbox({ status: before }), after), {
    metadata: { uid: 'box-uid', resourceVersion: '10' },
    status: { service: null, nodeName: 'node-2' },
  })
})
