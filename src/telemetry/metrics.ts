import { Registry, collectDefaultMetrics } from 'prom-client'
import { InstrumentFactory } from './instruments.ts'
import type { LabelledCounter, LabelledHistogram, MeasuredGauge } from './instruments.ts'

export type { LabelledCounter, LabelledHistogram, MeasuredGauge, Sample } from './instruments.ts'

/** What the process is, for `agent_sandbox_build_info`. */
export interface BuildInfo {
  version: string
  commit?: string
  /** RFC 3339. */
  date?: string
}

/** Everything that is measured. Gauges are computed at a scrape: give them a source once, at construction. */
export interface Metrics {
  readonly registry: Registry

  /** Admission's first sight of a claim → Ready, in ms. */
  readonly claimStartupLatency: LabelledHistogram<'launch_type' | 'sandbox_template'>
  /** The controller's first sight of a claim → Ready, in ms. */
  readonly claimControllerStartupLatency: LabelledHistogram<'launch_type' | 'sandbox_template'>
  /** The client's own request time → Ready, in ms. */
  readonly clientClaimStartupLatency: LabelledHistogram<'launch_type' | 'sandbox_template'>
  /** Creation of a Sandbox → its Ready, in ms. */
  readonly sandboxCreationLatency: LabelledHistogram<'namespace' | 'launch_type' | 'sandbox_template'>
  /** One for each Sandbox that was created or adopted for a claim. */
  readonly claimCreations: LabelledCounter<
    'namespace' | 'sandbox_template' | 'launch_type' | 'warmpool_name' | 'pod_condition' | 'created_by'
  >
  readonly sandboxes: MeasuredGauge<
    'namespace' | 'ready_condition' | 'expired' | 'launch_type' | 'sandbox_template' | 'owned_by' | 'created_by'
  >

  readonly poolReplicas: MeasuredGauge<'kind' | 'namespace' | 'pool' | 'state'>
  readonly poolDesiredReplicas: MeasuredGauge<'kind' | 'namespace' | 'pool'>
  /** Sandboxes found with a pool's marks and no valid proof of origin. */
  readonly unprovenSandboxes: LabelledCounter<'namespace' | 'pool'>

  /** Seconds. */
  readonly admissionDuration: LabelledHistogram<'webhook' | 'operation' | 'verdict'>
  readonly admissionRefusals: LabelledCounter<'rule' | 'mode' | 'namespace'>

  readonly apiRequests: LabelledCounter<'verb' | 'resource' | 'code'>
  readonly workqueueDepth: MeasuredGauge<'name'>
  /** From becoming due until being taken up, in seconds. */
  readonly workqueueLatency: LabelledHistogram<'name'>
  readonly workqueueRetries: LabelledCounter<'name'>
  readonly reflectorRestarts: LabelledCounter<'reason'>

  /** Seconds since the epoch. */
  readonly certificateExpiry: MeasuredGauge<'what'>
  /** 1 while this process may write as the leader. */
  readonly leader: MeasuredGauge<never>
  /** 1 while the configuration file on disk could not be loaded and an older one is in force. */
  readonly configReloadFailed: MeasuredGauge<never>
}

/**
 * Sized so that a cluster in earnest use keeps its names apart, while one in malicious use costs a few megabytes here
 * and some tens of thousands of series where they are stored.
 */
const seriesLimits = {
  userChosen: ['namespace', 'sandbox_template', 'warmpool_name', 'pool', 'created_by'],
  series: 2000,
  histogramSeries: 300,
}

/**
 * Milliseconds until a claim is Ready. From 100 up these are the boundaries that dashboards of this API already
 * aggregate over; below them a warm claim, which takes a few milliseconds, would show as nothing but "under 100".
 */
const startupBuckets = [
  5, 10, 25, 50, 100, 250, 500, 750, 1000, 1250, 1500, 2000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 240_000,
]
/** Seconds; ends at 10, the longest an API server waits for a webhook unless told otherwise. */
const admissionBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10]
/** Seconds. */
const queueBuckets = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120]

/** All metrics on a registry of their own, with the process's (CPU, memory, event loop lag) beside them. */
export function createMetrics(build: BuildInfo = { version: 'unknown' }): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const make = new InstrumentFactory(registry, seriesLimits)
  const claimLabels = ['launch_type', 'sandbox_template'] as const

  const buildInfo = make.gauge({
    name: 'agent_sandbox_build_info',
    help: 'What this process was built from; always 1.',
    labels: ['git_version', 'git_commit', 'build_date', 'node_version', 'platform'],
  })
  const buildLabels = {
    git_version: build.version,
    git_commit: build.commit ?? 'unknown',
    build_date: build.date ?? 'unknown',
    node_version: process.version,
    platform: `${process.platform}/${process.arch}`,
  }
  buildInfo.measure(() => [{ labels: buildLabels, value: 1 }])

  return {
    registry,
    claimStartupLatency: make.histogram({
      name: 'agent_sandbox_claim_startup_latency_ms',
      help: 'Milliseconds from the admission of a SandboxClaim until it is Ready.',
      labels: claimLabels,
      buckets: startupBuckets,
    }),
    claimControllerStartupLatency: make.histogram({
      name: 'agent_sandbox_claim_controller_startup_latency_ms',
      help: 'Milliseconds from the first time the controller saw a SandboxClaim until it is Ready.',
      labels: claimLabels,
      buckets: startupBuckets,
    }),
    clientClaimStartupLatency: make.histogram({
      name: 'agent_sandbox_client_claim_startup_latency_ms',
      help: 'Milliseconds from the request time that the client recorded until the SandboxClaim is Ready.',
      labels: claimLabels,
      buckets: startupBuckets,
    }),
    sandboxCreationLatency: make.histogram({
      name: 'agent_sandbox_creation_latency_ms',
      help: 'Milliseconds from the creation of a Sandbox until it is Ready.',
      labels: ['namespace', 'launch_type', 'sandbox_template'],
      buckets: startupBuckets,
    }),
    claimCreations: make.counter({
      name: 'agent_sandbox_claim_creation_total',
      help: 'Sandboxes created or adopted for SandboxClaims.',
      labels: ['namespace', 'sandbox_template', 'launch_type', 'warmpool_name', 'pod_condition', 'created_by'],
    }),
    sandboxes: make.gauge({
      name: 'agent_sandboxes',
      help: 'Sandboxes at this moment.',
      labels: ['namespace', 'ready_condition', 'expired', 'launch_type', 'sandbox_template', 'owned_by', 'created_by'],
    }),
    poolReplicas: make.gauge({
      name: 'sandgate_pool_replicas',
      help: 'Members of a pool, by state.',
      labels: ['kind', 'namespace', 'pool', 'state'],
    }),
    poolDesiredReplicas: make.gauge({
      name: 'sandgate_pool_desired_replicas',
      help: 'Unclaimed members that a pool should hold.',
      labels: ['kind', 'namespace', 'pool'],
    }),
    unprovenSandboxes: make.counter({
      name: 'sandgate_unproven_sandboxes_total',
      help: 'Sandboxes that bore the marks of a pool while their proof of origin did not match.',
      labels: ['namespace', 'pool'],
    }),
    admissionDuration: make.histogram({
      name: 'sandgate_admission_duration_seconds',
      help: 'Seconds that an admission review took in this process.',
      labels: ['webhook', 'operation', 'verdict'],
      buckets: admissionBuckets,
    }),
    admissionRefusals: make.counter({
      name: 'sandgate_admission_refusals_total',
      help: 'Findings of a rule, by the mode that decided what became of them.',
      labels: ['rule', 'mode', 'namespace'],
    }),
    apiRequests: make.counter({
      name: 'sandgate_api_requests_total',
      help: 'Requests to the API server; code is the HTTP status, or the kind of failure when no reply came.',
      labels: ['verb', 'resource', 'code'],
    }),
    workqueueDepth: make.gauge({
      name: 'sandgate_workqueue_depth',
      help: 'Keys that wait to be reconciled.',
      labels: ['name'],
    }),
    workqueueLatency: make.histogram({
      name: 'sandgate_workqueue_latency',
      help: 'Seconds a key waited from being due until it was taken up.',
      labels: ['name'],
      buckets: queueBuckets,
    }),
    workqueueRetries: make.counter({
      name: 'sandgate_workqueue_retries',
      help: 'Keys put back with a delay after a failure.',
      labels: ['name'],
    }),
    reflectorRestarts: make.counter({
      name: 'sandgate_reflector_restarts_total',
      help: 'Watches opened again, by what ended the one before.',
      labels: ['reason'],
    }),
    certificateExpiry: make.gauge({
      name: 'sandgate_certificate_expiry_timestamp_seconds',
      help: 'When a certificate ends, in seconds since the epoch.',
      labels: ['what'],
    }),
    leader: make.gauge({
      name: 'sandgate_leader',
      help: '1 while this process holds the lease that lets it write.',
      labels: [],
    }),
    configReloadFailed: make.gauge({
      name: 'sandgate_config_reload_failed',
      help: '1 while the configuration file cannot be loaded and an older one is in force.',
      labels: [],
    }),
  }
}
