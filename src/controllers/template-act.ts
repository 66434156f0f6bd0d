import { networkPolicies, pods, type NetworkPolicy } from '../api/core.ts'
import { nameHash } from '../api/hash.ts'
import { sandboxKind } from '../api/kinds.ts'
import { labels } from '../api/vocabulary.ts'
import { isKubeError, type KubeError } from '../kube/errors.ts'
import {
  closedNetworkPolicy,
  networkPolicyName,
  networkPolicyPatch,
  type TemplateIdentity,
} from '../planning/network-policy.ts'
import type { NetworkPolicyPlan } from '../planning/plan-network-policy.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { ControllerDependencies } from './dependencies.ts'
import type { Complaint } from './template-report.ts'

/** What became of a plan, and what the pools of the template have to be told. */
export type PolicyEnd =
  | { readonly kind: 'settled'; readonly outcome: Outcome; readonly complaint?: Complaint }
  /** Another policy than the caches show holds the name: plan again, on this one. */
  | { readonly kind: 'met'; readonly policy: NetworkPolicy }

const done: PolicyEnd = { kind: 'settled', outcome: { kind: 'done' } }
/** Nothing but a change by hand helps, and that wakes us; this is for what no watch shows. */
const complaintRecheckMs = 60_000

/** Carries out what was planned for a template's NetworkPolicy. */
export async function actOnPolicy(
  plan: NetworkPolicyPlan,
  identity: TemplateIdentity,
  deps: ControllerDependencies,
): Promise<PolicyEnd> {
  const { client } = deps
  switch (plan.kind) {
    case 'keep':
      return done
    case 'create':
      return createPolicy(plan.object, identity, deps)
    case 'repair':
      return repairPolicy(plan.object, plan.patch, identity, deps)
    case 'delete': {
      if (plan.because === 'unused' && (await isNeeded(identity, deps)))
        return again(1_000, 'its sandboxes are not gone')
      const { uid = '', resourceVersion = '' } = plan.object.metadata
      await client.delete(networkPolicies, refOf(identity), { uid, resourceVersion }).catch(unlessGone)
      return done
    }
    case 'taken':
      return complain({ reason: 'NetworkPolicyNameTaken', message: plan.message })
    case 'wait':
      return again(plan.forMs, plan.isUnused ? 'its last use has just ended' : 'sandboxes of its template remain')
    default:
      return plan satisfies never
  }
}

async function createPolicy(
  wanted: NetworkPolicy,
  identity: TemplateIdentity,
  { client }: ControllerDependencies,
): Promise<PolicyEnd> {
  const attempt = async (policy: NetworkPolicy): Promise<PolicyEnd | undefined> => {
    try {
      await client.create(networkPolicies, policy)
      return undefined
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
      return { kind: 'met', policy: await client.get(networkPolicies, refOf(identity)) }
    }
  }
  try {
    return (await attempt(wanted)) ?? done
  } catch (error) {
    if (isNamespaceGone(error)) return done
    if (!isKubeError(error, 'Invalid', 'BadRequest')) throw error
    return (await attempt(closedNetworkPolicy(identity))) ?? complain(refused(error))
  }
}

async function repairPolicy(
  present: NetworkPolicy,
  patch: object,
  identity: TemplateIdentity,
  { client }: ControllerDependencies,
): Promise<PolicyEnd> {
  try {
    await client.patch(networkPolicies, refOf(identity), patch, { type: 'merge' }).catch(unlessGone)
    return done
  } catch (error) {
    if (!isKubeError(error, 'Invalid', 'BadRequest')) throw error
    const closing = networkPolicyPatch(present, closedNetworkPolicy(identity))
    if (closing) await client.patch(networkPolicies, refOf(identity), closing, { type: 'merge' }).catch(unlessGone)
    return complain(refused(error))
  }
}

/** Rules that the API server does not take must not leave the network open until somebody notices. */
function refused({ message }: KubeError): Complaint {
  return {
    reason: 'NetworkPolicyRefused',
    message: `The API server refused the rules in spec.networkPolicy, so all traffic is denied: ${message}`,
  }
}

/** Deleting a policy opens a network, so what the caches say is confirmed by the server first. */
async function isNeeded({ namespace, templateRef }: TemplateIdentity, { client }: ControllerDependencies) {
  const query = { namespace, labelSelector: `${labels.templateRefHash}=${nameHash(templateRef)}`, limit: 1 }
  const [sandboxes, theirPods] = await Promise.all([client.list(sandboxKind, query), client.list(pods, query)])
  return sandboxes.items.length > 0 || theirPods.items.length > 0
}

function again(afterMs: number, because: string): PolicyEnd {
  return { kind: 'settled', outcome: { kind: 'recheck', afterMs, because } }
}

function complain(complaint: Complaint): PolicyEnd {
  const outcome: Outcome = { kind: 'recheck', afterMs: complaintRecheckMs, because: complaint.reason }
  return { kind: 'settled', outcome, complaint }
}

function isNamespaceGone(error: unknown): boolean {
  if (isKubeError(error, 'NotFound')) return true
  return isKubeError(error, 'Forbidden') && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}

function unlessGone(error: unknown): void {
  if (!isKubeError(error, 'NotFound')) throw error
}

function refOf(identity: TemplateIdentity): { namespace: string; name: string } {
  return { namespace: identity.namespace, name: networkPolicyName(identity) }
}
