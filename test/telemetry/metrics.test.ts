import t from 'tap'
import { createMetrics } from '../../src/telemetry/metrics.ts'

/** The lines of `name`'s samples. */
async function samplesOf(metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> {
  const text = await metrics.registry.metrics()
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
}

const names = {
  agent_sandbox_build_info: 'git_version,git_commit,build_date,node_version,platform',
  agent_sandbox_claim_controller_startup_latency_ms: 'launch_type,sandbox_template',
  agent_sandbox_claim_creation_total: 'namespace,sandbox_template,launch_type,warmpool_name,pod_condition,created_by',
  agent_sandbox_claim_startup_latency_ms: 'launch_type,sandbox_template',
  agent_sandbox_client_claim_startup_latency_ms: 'launch_type,sandbox_template',
  agent_sandbox_creation_latency_ms: 'namespace,launch_type,sandbox_template',
  agent_sandboxes: 'namespace,ready_condition,expired,launch_type,sandbox_template,owned_by,created_by',
  sandgate_admission_duration_seconds: 'webhook,operation,verdict',
  sandgate_admission_refusals_total: 'rule,mode,namespace',
  sandgate_api_requests_total: 'verb,resource,code',
  sandgate_certificate_expiry_timestamp_seconds: 'what',
  sandgate_config_reload_failed: '',
  sandgate_leader: '',
  sandgate_pool_desired_replicas: 'kind,namespace,pool',
  sandgate_pool_replicas: 'kind,namespace,pool,state',
  sandgate_reflector_restarts_total: 'reason',
  sandgate_workqueue_depth: 'name',
  sandgate_workqueue_latency: 'name',
  sandgate_workqueue_retries: 'name',
}

t.test('the names and labels are those that dashboards and autoscalers use', (t) => {
  const described = createMetrics()
    .registry.getMetricsAsArray()
    .filter(({ name }) => name in names)
    .map((metric) => [metric.name, (metric as unknown as { labelNames: string[] }).labelNames.join(',')])
  t.same(Object.fromEntries(described), names)
  t.end()
})

t.test('two sets of metrics share nothing', async (t) => {
  const [one, other] = [createMetrics(), createMetrics()]
  one.reflectorRestarts.inc({ reason: 'gone' })
  t.same(await samplesOf(one, 'sandgate_reflector_restarts_total'), [
    'sandgate_reflector_restarts_total{reason="gone"} 1',
  ])
  t.same(await samplesOf(other, 'sandgate_reflector_restarts_total'), [])
})

t.test('the build is told, and so is the process', async (t) => {
  const metrics = createMetrics({ version: '1.2.3', commit: 'abc' })
  const [info] = await samplesOf(metrics, 'agent_sandbox_build_info')
  t.match(info, /\{git_version="1\.2\.3",git_commit="abc",build_date="unknown",.*\} 1$/)
  t.equal((await samplesOf(metrics, 'process_cpu_seconds_total')).length, 1)
})

t.test('a gauge is computed at each scrape: what is gone, is gone', async (t) => {
  const metrics = createMetrics()
  let pools = ['a', 'b']
  metrics.poolDesiredReplicas.measure(() =>
    pools.map((pool) => ({ labels: { kind: 'SandboxSet', namespace: 'n', pool }, value: 3 })),
  )
  const line = (pool: string, value: number) =>
    `sandgate_pool_desired_replicas{kind="SandboxSet",namespace="n",pool="${pool}"} ${value}`
  t.same(await samplesOf(metrics, 'sandgate_pool_desired_replicas'), [line('a', 3), line('b', 3)])
  pools = ['b']
  t.same(await samplesOf(metrics, 'sandgate_pool_desired_replicas'), [line('b', 3)])
})

t.test('sources of one gauge are summed, until they are removed', async (t) => {
  const metrics = createMetrics()
  metrics.leader.measure(() => [{ labels: {}, value: 1 }])
  const remove = metrics.leader.measure(() => [
    { labels: {}, value: 10 },
    { labels: {}, value: 100 },
  ])
  t.same(await samplesOf(metrics, 'sandgate_leader'), ['sandgate_leader 111'])
  remove()
  t.same(await samplesOf(metrics, 'sandgate_leader'), ['sandgate_leader 1'])
})

t.test('a latency falls into its bucket', async (t) => {
  const metrics = createMetrics()
  metrics.claimStartupLatency.observe({ launch_type: 'warm', sandbox_template: 'python' }, 7)
  const buckets = await samplesOf(metrics, 'agent_sandbox_claim_startup_latency_ms_bucket')
  const labels = 'launch_type="warm",sandbox_template="python"'
  t.ok(buckets.includes(`agent_sandbox_claim_startup_latency_ms_bucket{le="5",${labels}} 0`))
  t.ok(buckets.includes(`agent_sandbox_claim_startup_latency_ms_bucket{le="10",${labels}} 1`))
})

t.test('users cannot make series without end, and nothing goes uncounted', async (t) => {
  const metrics = createMetrics()
  for (let i = 0; i < 10_000; i++) {
    metrics.claimStartupLatency.observe({ launch_type: 'cold', sandbox_template: `t${i}` }, 1)
    metrics.claimCreations.inc({
      namespace: 'n',
      sandbox_template: `t${i}`,
      launch_type: 'cold',
      warmpool_name: `p${i}`,
      pod_condition: 'not_ready',
      created_by: 'controller',
    })
  }
  const latencies = await samplesOf(metrics, 'agent_sandbox_claim_startup_latency_ms_count')
  t.equal(latencies.length, 301)
  t.equal(latencies.at(-1)?.split('{')[1], 'launch_type="cold",sandbox_template="other"} 9700')

  const creations = await samplesOf(metrics, 'agent_sandbox_claim_creation_total')
  t.equal(creations.length, 2_001)
  t.match(creations.at(-1), /namespace="other",sandbox_template="other",launch_type="cold",warmpool_name="other"/)
  t.match(creations.at(-1), /created_by="other"\} 8000$/)
})

t.test('a series, once begun, goes on beyond the bound', async (t) => {
  const metrics = createMetrics()
  for (let i = 0; i < 1_000; i++)
    metrics.claimStartupLatency.observe({ launch_type: 'warm', sandbox_template: `t${i}` }, 1)
  metrics.claimStartupLatency.observe({ launch_type: 'warm', sandbox_template: 't0' }, 1)
  const [first] = await samplesOf(metrics, 'agent_sandbox_claim_startup_latency_ms_count')
  t.match(first, /sandbox_template="t0"\} 2$/)
})

t.test('labels that no user chooses are not bounded', async (t) => {
  const metrics = createMetrics()
  for (let i = 0; i < 3_000; i++) metrics.apiRequests.inc({ verb: 'get', resource: `r${i}`, code: '200' })
  t.equal((await samplesOf(metrics, 'sandgate_api_requests_total')).length, 3_000)
})

t.test('pools that are gone take no room from new ones', async (t) => {
  const metrics = createMetrics()
  let generation = 0
  metrics.poolDesiredReplicas.measure(() =>
    Array.from({ length: 1_500 }, (_, i) => ({
      labels: { kind: 'SandboxSet', namespace: 'n', pool: `g${generation}-${i}` },
      value: 1,
    })),
  )
  await metrics.registry.metrics()
  generation = 1
  const samples = await samplesOf(metrics, 'sandgate_pool_desired_replicas')
  t.equal(samples.length, 1_500)
  t.ok(samples.every((sample) => sample.includes('pool="g1-')))
})
