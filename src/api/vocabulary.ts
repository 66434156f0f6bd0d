/** Labels and annotations with a meaning. `docs/architecture.md` has the table of who writes which, and where. */
export const domains = {
  agents: 'agents.x-k8s.io',
  extensions: 'extensions.agents.x-k8s.io',
  kruise: 'agents.kruise.io',
  sandgate: 'sandgate.dev',
} as const

export const labels = {
  /** Hash of the pool; present exactly while unclaimed. */
  warmPool: 'agents.x-k8s.io/warm-pool-sandbox',
  /** Hash of the template name; what the NetworkPolicy selects. */
  templateRefHash: 'agents.x-k8s.io/sandbox-template-ref-hash',
  /** Hash of the blueprint it was made from; removed at adoption. */
  blueprintHash: 'agents.x-k8s.io/sandbox-template-hash',
  /** Older controllers' hash: never written, removed at adoption. */
  podTemplateHash: 'agents.x-k8s.io/sandbox-pod-template-hash',
  launchType: 'agents.x-k8s.io/launch-type',
  claimUid: 'agents.x-k8s.io/claim-uid',
  createdBy: 'agents.x-k8s.io/created-by',
  /** Hash of the sandbox name; what the Service selects and the router reads. */
  sandboxNameHash: 'agents.x-k8s.io/sandbox-name-hash',
  /** "true" lets a stand-alone Sandbox take over an unowned object of its name. */
  adoptable: 'agents.x-k8s.io/adoptable',
  setPool: 'agents.kruise.io/sandbox-pool',
  setTemplate: 'agents.kruise.io/sandbox-template',
  setClaimed: 'agents.kruise.io/sandbox-claimed',
  setTemplateHash: 'agents.kruise.io/template-hash',
  /** Per-namespace admission mode: enforce, warn, audit or off. */
  namespaceMode: 'sandgate.dev/admission',
} as const

export const annotations = {
  podName: 'agents.x-k8s.io/pod-name',
  templateRef: 'agents.x-k8s.io/sandbox-template-ref',
  /** The assigned sandbox as older controllers recorded it (as an annotation, or as a label). */
  sandboxName: 'agents.x-k8s.io/sandbox-name',
  propagatedLabels: 'agents.x-k8s.io/propagated-labels',
  propagatedAnnotations: 'agents.x-k8s.io/propagated-annotations',
  webhookFirstObservedAt: 'agents.x-k8s.io/webhook-first-observed-at',
  clientFirstRequestedAt: 'agents.x-k8s.io/client-first-requested-at',
  safeToEvict: 'cluster-autoscaler.kubernetes.io/safe-to-evict',
  /** W3C trace context, carried from the claim to its Sandbox. */
  traceContext: 'opentelemetry.io/trace-context',
  requestedBy: 'sandgate.dev/requested-by',
  /** Proof of who made a Sandbox. */
  origin: 'sandgate.dev/origin',
  /** Proof of which claim a Sandbox was bound to. */
  bound: 'sandgate.dev/bound',
  /** On a Pod: random, drawn for the request that created it, so that a lost reply can be told from a planted Pod. */
  attempt: 'sandgate.dev/attempt',
} as const

export const conditionTypes = {
  ready: 'Ready',
  finished: 'Finished',
  suspended: 'Suspended',
  podScheduled: 'PodScheduled',
  available: 'Available',
  progressing: 'Progressing',
  templateResolved: 'TemplateResolved',
  /** On pools, and only after trouble: whether the NetworkPolicy that was asked for is in place. */
  networkIsolated: 'NetworkIsolated',
} as const

/** Reasons of a claim's Ready condition that are not forwarded from its Sandbox. */
export const claimReasons = {
  sandboxNotReady: 'SandboxNotReady',
  sandboxMissing: 'SandboxMissing',
  warmPoolNotFound: 'WarmPoolNotFound',
  templateNotFound: 'TemplateNotFound',
  invalidMetadata: 'InvalidMetadata',
  envVarsInjectionRejected: 'EnvVarsInjectionRejected',
  volumeClaimTemplatesError: 'VolumeClaimTemplatesError',
  sandboxNameTaken: 'SandboxNameTaken',
  quotaExceeded: 'QuotaExceeded',
  claimExpired: 'ClaimExpired',
  sandboxExpired: 'SandboxExpired',
  adoptionConflict: 'AdoptionConflict',
  reconcilerError: 'ReconcilerError',
} as const

/** Reasons of a Sandbox's Ready condition. */
export const sandboxReasons = {
  dependenciesReady: 'DependenciesReady',
  dependenciesNotReady: 'DependenciesNotReady',
  suspended: 'SandboxSuspended',
  podSucceeded: 'PodSucceeded',
  podFailed: 'PodFailed',
  expired: 'SandboxExpired',
  multiplePods: 'MultiplePods',
  quotaExceeded: 'QuotaExceeded',
  reconcilerError: 'ReconcilerError',
} as const
