import type { V1Container } from '@kubernetes/client-node'
import { listOf } from '../blueprint-view.ts'
import { unless, type Check } from './check.ts'

/** The further controls of the Pod Security Standard "restricted". They are about Linux; a Windows Pod is exempt. */

const volumeTypes: ReadonlySet<string> = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
])

type Capabilities = NonNullable<NonNullable<V1Container['securityContext']>['capabilities']>
const has = (list: Capabilities['drop'] | null, name: string) => Array.isArray(list) && list.includes(name)

export const restricted: readonly Check[] = [
  {
    level: 'restricted',
    advice: `Use volumes of the types ${[...volumeTypes].join(', ')}.`,
    pod: ({ spec }) =>
      listOf(spec.volumes).flatMap((volume, i) =>
        Object.entries(volume)
          .filter(([key, value]) => key !== 'name' && value !== null && !volumeTypes.has(key))
          .map(([type]) => ({ at: `volumes[${i}].${type}`, found: `volume ${volume.name} of type ${type}` })),
      ),
  },
  {
    level: 'restricted',
    advice: 'Set securityContext.allowPrivilegeEscalation: false on the container.',
    container: ({ securityContext }) =>
      securityContext?.allowPrivilegeEscalation === false
        ? []
        : [{ at: 'securityContext.allowPrivilegeEscalation', found: 'privilege escalation' }],
  },
  {
    level: 'restricted',
    advice: 'Set securityContext.runAsNonRoot: true on the Pod, and nothing else on its containers.',
    pod: ({ spec }) => unless([true], 'securityContext.runAsNonRoot', spec.securityContext?.runAsNonRoot),
    container: ({ securityContext }, { spec }) =>
      (securityContext?.runAsNonRoot ?? spec.securityContext?.runAsNonRoot) === true
        ? []
        : [{ at: 'securityContext.runAsNonRoot', found: 'a container that may run as root' }],
  },
  {
    level: 'restricted',
    advice: 'Choose a user other than 0.',
    pod: ({ spec }) => rootUser(spec.securityContext?.runAsUser),
    container: ({ securityContext }) => rootUser(securityContext?.runAsUser),
  },
  {
    level: 'restricted',
    advice: 'Set securityContext.seccompProfile.type: RuntimeDefault on the Pod.',
    container: ({ securityContext }, { spec }) =>
      (securityContext?.seccompProfile?.type ?? spec.securityContext?.seccompProfile?.type) === undefined
        ? [{ at: 'securityContext.seccompProfile', found: 'a container without a seccomp profile' }]
        : [],
  },
  {
    level: 'restricted',
    advice: 'Set securityContext.capabilities.drop: [ALL] on the container, and add NET_BIND_SERVICE at most.',
    container: ({ securityContext }) => {
      const { drop, add } = securityContext?.capabilities ?? {}
      const kept = has(drop, 'ALL')
        ? []
        : [{ at: 'securityContext.capabilities.drop', found: 'a container that keeps capabilities' }]
      const added = (Array.isArray(add) ? add : []).flatMap((capability, i) =>
        capability === 'NET_BIND_SERVICE'
          ? []
          : [{ at: `securityContext.capabilities.add[${i}]`, found: `the capability ${capability}` }],
      )
      return [...kept, ...added]
    },
  },
]

function rootUser(user: number | null | undefined) {
  return user === 0 ? [{ at: 'securityContext.runAsUser', found: 'the user 0 (root)' }] : []
}
