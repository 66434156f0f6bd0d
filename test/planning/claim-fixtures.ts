import type { Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool } from '../../src/api/kinds.ts'
import { nameHash } from '../../src/api/hash.ts'
import { labels } from '../../src/api/vocabulary.ts'
import { claimOwner } from '../../src/planning/adoption.ts'
import type { ClaimView } from '../../src/planning/claim-view.ts'

/** Noon of the day on which all claims of these tests were made. */
export const noon = Date.parse('2030-01-01T12:00:00Z')

export function at(secondsAfterNoon: number): string {
  return new Date(noon + secondsAfterNoon * 1000).toISOString().replace('.000Z', 'Z')
}

interface ClaimParts {
  metadata?: Partial<SandboxClaim['metadata']>
  spec?: Partial<SandboxClaim['spec']>
  status?: SandboxClaim['status']
}

/** A claim on the pool `pool`, made at noon. */
export function aClaim({ metadata, spec, status }: ClaimParts = {}): SandboxClaim {
  return {
    metadata: {
      name: 'claim',
      namespace: 'ns',
      uid: 'claim-uid',
      resourceVersion: '10',
      generation: 1,
      creationTimestamp: at(0),
      ...metadata,
    },
    spec: { warmPoolRef: { name: 'pool' }, ...spec },
    ...(status && { status }),
  }
}

export const template: SandboxTemplate = {
  metadata: { name: 'python', namespace: 'ns', uid: 'template-uid' },
  spec: {
    podTemplate: { metadata: { labels: { team: 'x' } }, spec: { containers: [{ name: 'main', image: 'python' }] } },
  },
}

export const pool: SandboxWarmPool = {
  metadata: { name: 'pool', namespace: 'ns', uid: 'pool-uid' },
  spec: { sandboxTemplateRef: { name: 'python' } },
}

interface SandboxParts {
  name?: string
  claim?: SandboxClaim
  metadata?: Partial<Sandbox['metadata']>
  status?: Sandbox['status']
  ready?: boolean
}

/** A sandbox, in line with its claim when it has one. */
export function aSandbox({ name = 'pool-abc', claim, metadata, status, ready = true }: SandboxParts = {}): Sandbox {
  const marks = {
    [labels.templateRefHash]: nameHash('python'),
    ...(claim && { [labels.claimUid]: claim.metadata.uid ?? '' }),
  }
  return {
    metadata: {
      name,
      namespace: 'ns',
      uid: `${name}-uid`,
      resourceVersion: '5',
      creationTimestamp: at(-60),
      labels: marks,
      ...(claim && { ownerReferences: [claimOwner(claim)] }),
      ...metadata,
    },
    spec: {
      podTemplate: {
        metadata: { labels: { team: 'x', ...marks } },
        spec: { containers: [{ name: 'main', image: 'python' }] },
      },
    },
    status: status ?? {
      conditions: [
        {
          type: 'Ready',
          status: ready ? 'True' : 'False',
          reason: ready ? 'DependenciesReady' : 'DependenciesNotReady',
          message: '',
          lastTransitionTime: at(-30),
        },
      ],
      podIPs: ['10.0.0.1'],
    },
  }
}

/** A claim whose pool and template are there, with nothing bound and an empty stock; each test changes one thing. */
export function aView(changes: Partial<ClaimView> = {}): ClaimView {
  return {
    claim: aClaim(),
    owned: [],
    unseen: undefined,
    isDoubtful: false,
    named: { kind: 'unknown', because: 'not looked up' },
    pool: { kind: 'found', value: pool },
    template: { kind: 'found', value: template },
    refusals: [],
    templateRefusal: undefined,
    marked: undefined,
    stock: { kind: 'empty' },
    lostRaces: 0,
    ofName: { kind: 'missing' },
    ofSameHash: undefined,
    exceededQuota: undefined,
    confirmed: new Set(),
    rebindAfterLoss: true,
    ...changes,
  }
}
