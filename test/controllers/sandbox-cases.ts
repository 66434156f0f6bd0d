import { nameHash } from '../../src/api/hash.ts'
import type { Sandbox } from '../../src/api/kinds.ts'
import { annotations, labels } from '../../src/api/vocabulary.ts'
import { createSandboxController } from '../../src/controllers/sandbox-controller.ts'
import { findCondition } from '../../src/planning/conditions.ts'
import { claimOwner, poolOwner } from '../planning/sandbox-fixtures.ts'
import { Harness } from './sandbox-harness.ts'

export const spec: Sandbox['spec'] = { podTemplate: { spec: { containers: [{ name: 'main', image: 'python' }] } } }
export const alone = (more: Partial<Sandbox['spec']> = {}): Sandbox => ({
  metadata: { name: 'box', namespace: 'ns' },
  spec: { ...spec, ...more },
})
export const poolMarks = { [labels.warmPool]: nameHash('pool'), [labels.templateRefHash]: nameHash('python') }
export const member = (): Sandbox => ({
  metadata: { name: 'box', namespace: 'ns', labels: poolMarks, ownerReferences: [poolOwner] },
  spec: { podTemplate: { ...spec.podTemplate, metadata: { annotations: { [annotations.safeToEvict]: 'true' } } } },
})
/** What the claim controller's adoption patch makes of a member. */
export const adopted = ({ metadata, ...rest }: Sandbox): Sandbox => ({
  ...rest,
  metadata: {
    ...metadata,
    generation: 2,
    ownerReferences: [claimOwner],
    labels: { [labels.templateRefHash]: nameHash('python'), [labels.claimUid]: 'claim-uid' },
  },
  spec,
})
export const readyOf = (sandbox: Sandbox | undefined) => findCondition(sandbox?.status?.conditions, 'Ready')

export const harness = (t: ConstructorParameters<typeof Harness>[0]) => new Harness(t, createSandboxController)
