import type { Rule } from './rule.ts'
import * as claimEnv from './rules/claim-env.ts'
import * as claimLifecycle from './rules/claim-lifecycle.ts'
import * as claimMetadata from './rules/claim-metadata.ts'
import * as claimVolumes from './rules/claim-volumes.ts'
import { hashCollision } from './rules/names.ts'
import { ephemeralContainer, forgedSandbox, sandboxSpec } from './rules/pod.ts'
import { poolName, poolTemplateMissing, replicasCap } from './rules/pool.ts'
import { collectedWhileClaimed, forgedPool, pooledSpec, sandboxReservedKeys } from './rules/sandbox-integrity.ts'
import { claimedSpec, sandboxName, volumesImmutable } from './rules/sandbox.ts'
import { maxUnavailable, persistentContents, templateChoice, volumeMounted } from './rules/set.ts'
import { podInvalid, templateInUse } from './rules/template-cluster.ts'
import { reservedMetadata } from './rules/template-metadata.ts'
import { networkNameTaken, networkOpen, sidecarPorts } from './rules/template-network.ts'
import { imageRegistry, podSecurity, runtimeClass, serviceAccountToken } from './rules/template-pod.ts'
import { templateVolumeNames } from './rules/template-volumes.ts'

/** Every admission rule. Findings and docs/rules.md follow this order. */
export const rules: readonly Rule[] = [
  claimEnv.envPolicy,
  claimEnv.envOverride,
  claimEnv.envFrom,
  claimEnv.envContainer,
  claimEnv.envName,
  claimEnv.envReserved,
  claimVolumes.volumePolicy,
  claimVolumes.volumeOverride,
  claimVolumes.volumeNames,
  claimVolumes.volumeSource,
  claimMetadata.labelDomain,
  claimMetadata.annotationDomain,
  claimMetadata.runtimeAnnotation,
  claimMetadata.metadataConflict,
  claimMetadata.routerLabel,
  claimMetadata.claimReservedKeys,
  claimLifecycle.specImmutable,
  claimLifecycle.claimName,
  claimLifecycle.claimPoolMissing,
  claimLifecycle.claimTemplateMissing,
  claimLifecycle.claimNameTaken,
  claimLifecycle.claimExpiry,
  claimLifecycle.claimQuota,
  templateVolumeNames,
  podSecurity,
  serviceAccountToken,
  reservedMetadata,
  networkOpen,
  networkNameTaken,
  podInvalid,
  sidecarPorts,
  runtimeClass,
  imageRegistry,
  templateInUse,
  poolTemplateMissing,
  replicasCap,
  poolName,
  templateChoice,
  maxUnavailable,
  volumeMounted,
  persistentContents,
  forgedPool,
  sandboxReservedKeys,
  pooledSpec,
  claimedSpec,
  collectedWhileClaimed,
  volumesImmutable,
  sandboxName,
  hashCollision,
  forgedSandbox,
  sandboxSpec,
  ephemeralContainer,
]
