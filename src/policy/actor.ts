import type { PolicyConfig } from '../config/schema.ts'
import type { Actor } from './rule.ts'

/**
 * The garbage collector and the namespace controller, with an account per controller (`--use-service-account-credentials`)
 * or as the controller manager itself.
 */
const collectors: ReadonlySet<string> = new Set([
  'system:serviceaccount:kube-system:generic-garbage-collector',
  'system:serviceaccount:kube-system:namespace-controller',
  'system:kube-controller-manager',
])

/**
 * Who a request comes from, by the authenticated user name and groups alone. Nothing in an object counts, and
 * `system:masters` is a user like any other. Whoever may impersonate a controller's account is that controller.
 */
export function actorOf(user: { username: string; groups: readonly string[] }, config: PolicyConfig): Actor {
  const { controllers, trustedUsers, breakGlassGroup } = config.admission
  if (controllers.includes(user.username)) return 'controller'
  if (collectors.has(user.username)) return 'collector'
  if (trustedUsers.includes(user.username)) return 'trusted'
  if (breakGlassGroup !== undefined && user.groups.includes(breakGlassGroup)) return 'break-glass'
  return 'user'
}
