import type { Rule } from './rule.ts'
import { envContainer, envFrom, envName, envOverride, envPolicy, envReserved } from './rules/claim-env.ts'
import {
  annotationDomain,
  claimReservedKeys,
  labelDomain,
  metadataConflict,
  routerLabel,
  runtimeAnnotation,
} from './rules/claim-metadata.ts'
import { volumeNames, volumeOverride, volumePolicy, volumeSource } from './rules/claim-volumes.ts'
import { collectedWhileClaimed, forgedPool, sandboxReservedKeys } from './rules/sandbox-integrity.ts'
import { templateVolumeNames } from './rules/template-volumes.ts'

/** Every admission rule. Findings and docs/rules.md follow this order. */
export const rules: readonly Rule[] = [
  envPolicy,
  envOverride,
  envFrom,
  envContainer,
  envName,
  envReserved,
  volumePolicy,
  volumeOverride,
  volumeNames,
  volumeSource,
  labelDomain,
  annotationDomain,
  runtimeAnnotation,
  metadataConflict,
  routerLabel,
  claimReservedKeys,
  templateVolumeNames,
  forgedPool,
  sandboxReservedKeys,
  collectedWhileClaimed,
]
