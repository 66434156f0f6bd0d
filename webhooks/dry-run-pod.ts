import { pods, type Pod } from '../src/api/core.ts'
import type { Sandbox, SandboxSet, SandboxTemplate } from '../src/api/kinds.ts'
import type { PodTemplate, VolumeClaimTemplate } from '../src/api/schema.ts'
import type { PolicyConfig } from '../src/config/schema.ts'
import type { KubeClient } from '../src/kube/client.ts'
import { KubeError } from '../src/kube/errors.ts'
import type { Facts, Subject } from '../src/policy/rule.ts'
import { applySecureDefaults, type SecureDefaultsOptions } from '../src/policy/secure-defaults.ts'
import type { Deadline } from './deadline.ts'

type Answer = NonNullable<Facts['dryRun']>

/** The part of a subject that becomes a Pod. */
interface PodSource {
  readonly podTemplate: PodTemplate
  readonly volumeClaimTemplates: readonly VolumeClaimTemplate[]
  /** What the secure defaults depend on; undefined for a stand-alone Sandbox. */
  readonly template: SecureDefaultsOptions['template']
}

/**
 * What a subject says its Pod is; undefined when it says nothing of the kind, or nothing new, or when the controllers
 * made it, who built it from something that was tried already.
 */
export function podSourceOf(subject: Subject): PodSource | undefined {
  if (subject.operation === 'DELETE' || subject.subresource || subject.actor === 'controller') return undefined
  const source = sourceIn(subject.kind, subject.object)
  const old = subject.oldObject && sourceIn(subject.kind, subject.oldObject)
  return source && old && JSON.stringify(source) === JSON.stringify(old) ? undefined : source
}

/** Asks the API server, without effect, whether it would accept the Pod. Never rejects; slowness is an answer too. */
export async function tryPod(
  source: PodSource,
  namespace: string,
  { client, config, deadline }: { client: Pick<KubeClient, 'create'>; config: PolicyConfig; deadline: Deadline },
): Promise<Answer> {
  try {
    const pod = podOf(source, namespace, config)
    await deadline.limit((signal) => client.create(pods, pod, { dryRun: true, fieldValidation: 'Strict', signal }))
    return { kind: 'found', value: { accepted: true } }
  } catch (error) {
    return refusalIn(error)
  }
}

function sourceIn(kind: Subject['kind'], object: Subject['object']): PodSource | undefined {
  switch (kind) {
    case 'SandboxTemplate': {
      const { spec } = object as Unchecked<SandboxTemplate>
      return spec?.podTemplate && podSource(spec.podTemplate, spec.volumeClaimTemplates, spec)
    }
    case 'SandboxSet': {
      const { spec } = object as Unchecked<SandboxSet>
      return (
        spec?.template && podSource(spec.template, spec.volumeClaimTemplates, { networkPolicyManagement: 'Managed' })
      )
    }
    case 'Sandbox': {
      const { spec } = object as Unchecked<Sandbox>
      return spec?.podTemplate && podSource(spec.podTemplate, spec.volumeClaimTemplates, undefined)
    }
    case 'SandboxClaim':
    case 'SandboxWarmPool':
    case 'Pod':
      return undefined
    default:
      return kind satisfies never
  }
}

/** An object that was stored under another schema than ours may lack anything. */
type Unchecked<T extends { spec: object }> = { readonly spec?: Partial<T['spec']> }

function podSource(
  podTemplate: PodTemplate,
  volumeClaimTemplates: readonly VolumeClaimTemplate[] | undefined,
  template: PodSource['template'],
): PodSource {
  return { podTemplate, volumeClaimTemplates: volumeClaimTemplates ?? [], template }
}

function podOf(
  { podTemplate, volumeClaimTemplates, template }: PodSource,
  namespace: string,
  config: PolicyConfig,
): Pod {
  const spec = applySecureDefaults(podTemplate.spec, { template, config })
  const claimed = volumeClaimTemplates.map(({ metadata: { name } }) => ({
    name,
    persistentVolumeClaim: { claimName: name },
  }))
  if (claimed.length > 0) {
    const replaced = new Set(claimed.map(({ name }) => name))
    spec.volumes = [...(spec.volumes ?? []).filter(({ name }) => !replaced.has(name)), ...claimed]
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...podTemplate.metadata, namespace, generateName: 'sandgate-dry-run-' },
    spec,
  }
}

/**
 * A refusal counts only when it is the API server's own judgement of the Pod: 422 from its validation, 400 from its
 * decoder. Both name their reason; a webhook that refuses without a code shows as a 400 without one. Quota, a missing
 * service account and everything else say nothing about the template.
 */
function refusalIn(error: unknown): Answer {
  if (!(error instanceof KubeError))
    return { kind: 'unknown', because: error instanceof Error ? error.message : String(error) }
  const isOwnJudgement =
    (error.code === 'Invalid' && error.reason === 'Invalid') ||
    (error.code === 'BadRequest' && error.reason === 'BadRequest')
  if (!isOwnJudgement) return { kind: 'unknown', because: error.message }
  const causes = error.causes.length > 0 ? error.causes : [{ message: error.message }]
  return { kind: 'found', value: { accepted: false, causes } }
}
