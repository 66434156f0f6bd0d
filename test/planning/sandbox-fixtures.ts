import type { PersistentVolumeClaim, Pod, Service } from '../../src/api/core.ts'
import type { Sandbox, SandboxSpec, SandboxStatus } from '../../src/api/kinds.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { nameHash } from '../../src/api/hash.ts'
import { defaultConfig } from '../../src/config/schema.ts'
import type { ObjectMeta, OwnerReference } from '../../src/kube/object.ts'
import { buildPod } from '../../src/planning/build-pod.ts'
import { buildService } from '../../src/planning/build-service.ts'
import { buildVolumeClaim } from '../../src/planning/build-volume-claim.ts'
import { planSandbox } from '../../src/planning/plan-sandbox.ts'
import type { SandboxView } from '../../src/planning/sandbox-view.ts'

/** When all sandboxes of these tests were made. */
export const noon = Date.parse('2030-01-01T12:00:00Z')

export function at(secondsAfterNoon: number): string {
  return new Date(noon + secondsAfterNoon * 1000).toISOString().replace('.000Z', 'Z')
}

const owner = (apiVersion: string, kind: string, name: string, uid: string): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
})
export const poolOwner = owner('extensions.agents.x-k8s.io/v1beta1', 'SandboxWarmPool', 'pool', 'pool-uid')
export const setOwner = owner('agents.kruise.io/v1alpha1', 'SandboxSet', 'set', 'set-uid')
export const claimOwner = owner('extensions.agents.x-k8s.io/v1beta1', 'SandboxClaim', 'claim', 'claim-uid')
export const strangerOwner = owner('apps/v1', 'ReplicaSet', 'web-1', 'rs-uid')

interface SandboxParts {
  metadata?: Partial<ObjectMeta>
  spec?: Partial<SandboxSpec>
  status?: SandboxStatus
}

/** A stand-alone sandbox called `box` with one container. */
export function aSandbox({ metadata, spec, status }: SandboxParts = {}): Sandbox {
  return {
    metadata: {
      name: 'box',
      namespace: 'ns',
      uid: 'box-uid',
      resourceVersion: '10',
      generation: 1,
      creationTimestamp: at(0),
      ...metadata,
    },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'python' }] } }, ...spec },
    ...(status && { status }),
  }
}

/** Unclaimed stock of the pool `pool`. */
export function aMember({ metadata, ...parts }: SandboxParts = {}): Sandbox {
  return aSandbox({
    ...parts,
    metadata: {
      ownerReferences: [poolOwner],
      labels: { [labels.warmPool]: nameHash('pool'), [labels.templateRefHash]: nameHash('python') },
      ...metadata,
    },
  })
}

/** A sandbox that the claim `claim` has. */
export function aClaimed({ metadata, ...parts }: SandboxParts = {}): Sandbox {
  return aSandbox({
    ...parts,
    metadata: {
      ownerReferences: [claimOwner],
      labels: {
        [labels.templateRefHash]: nameHash('python'),
        [labels.claimUid]: 'claim-uid',
        [labels.createdBy]: 'sdk',
      },
      ...metadata,
    },
  })
}

interface PodParts {
  metadata?: Partial<ObjectMeta>
  spec?: Pod['spec']
  status?: Pod['status']
}

/** The Pod of a sandbox as the API server has it, not scheduled yet. */
export function aPod(sandbox: Sandbox, { metadata, spec, status }: PodParts = {}): Pod {
  const built = buildPod(sandbox, defaultConfig)
  return {
    ...built,
    metadata: { ...built.metadata, uid: 'pod-uid', resourceVersion: '20', creationTimestamp: at(0), ...metadata },
    ...((spec ?? built.spec) && { spec: { ...built.spec, ...spec } as NonNullable<Pod['spec']> }),
    ...(status && { status }),
  }
}

export const running: NonNullable<Pod['status']> = {
  phase: 'Running',
  podIP: '10.0.0.7',
  podIPs: [{ ip: '10.0.0.7' }],
  conditions: [
    { type: 'PodScheduled', status: 'True' },
    { type: 'Ready', status: 'True' },
  ],
}

export function aReadyPod(sandbox: Sandbox, metadata: Partial<ObjectMeta> = {}): Pod {
  return aPod(sandbox, { metadata, spec: { containers: [], nodeName: 'node-1' }, status: running })
}

/** An object of the sandbox's own making, as the API server has it. */
export function stored<T extends Service | PersistentVolumeClaim>(object: T, metadata: Partial<ObjectMeta> = {}): T {
  return { ...object, metadata: { ...object.metadata, uid: `${object.kind}-uid`, resourceVersion: '30', ...metadata } }
}

export const serviceOf = (sandbox: Sandbox, metadata: Partial<ObjectMeta> = {}) =>
  stored(buildService(sandbox), metadata)

export const dataTemplate = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } }
export const volumeClaimOf = (sandbox: Sandbox, metadata: Partial<ObjectMeta> = {}) =>
  stored(buildVolumeClaim(dataTemplate, sandbox), metadata)

/** What is known about a sandbox: nothing but itself, unless said otherwise. */
export function aView(parts: Partial<SandboxView> = {}): SandboxView {
  return {
    sandbox: aSandbox(),
    pods: [],
    service: undefined,
    volumeClaims: new Map(),
    ownPodUid: undefined,
    refusal: undefined,
    deferredSince: undefined,
    claimsAreWaiting: false,
    config: defaultConfig,
    ...parts,
  }
}

/** The view with the status that it asks for already published, so that only what is new remains to be done. */
export function settled(view: SandboxView, now = noon): SandboxView {
  const plan = planSandbox({ ...view, deferredSince: 0 }, now)
  if (plan.status.kind !== 'write') return view
  return { ...view, sandbox: { ...view.sandbox, status: plan.status.status } }
}

/** A ready sandbox with its Pod, at rest. */
export function atRest(sandbox: Sandbox, parts: Partial<SandboxView> = {}): SandboxView {
  return settled(aView({ sandbox, pods: [aReadyPod(sandbox)], ownPodUid: 'pod-uid', ...parts }))
}
