import { listOf, blueprintOf, containersOf } from '../blueprint-view.ts'
import { podSecurityViolations } from '../pod-security/violations.ts'
import type { Rule, Violation } from '../rule.ts'
import { applySecureDefaults } from '../secure-defaults.ts'

type WithPod = 'SandboxTemplate' | 'SandboxSet' | 'Sandbox'

const shared = {
  kinds: ['SandboxTemplate', 'SandboxSet', 'Sandbox'],
  on: ['CREATE', 'UPDATE'],
  judges: 'state',
  integrity: false,
  mode: 'enforce',
} as const

/** Judged as it will run, with the secure defaults applied: what they fill in need not be written. */
export const podSecurity: Rule<WithPod> = {
  ...shared,
  id: 'template/pod-security',
  refuses: 'Pods that break the Pod Security Standard: baseline, or restricted where the configuration says so.',
  why: 'A sandbox runs code that nobody has read, and these fields open the way to the node.',
  relax: 'Set rules: {template/pod-security: warn}, or label a namespace sandgate.dev/admission: warn.',
  check({ object }, { config }) {
    const { podSpec, path, annotations } = blueprintOf(object)
    if (!podSpec) return []
    return podSecurityViolations({
      pod: { spec: applySecureDefaults(podSpec, { template: undefined, config }), annotations },
      level: config.admission.podSecurity,
      specPath: `${path}.spec`,
      podPath: path,
      containers: containersOf(podSpec),
    })
  },
}

/** Code in a sandbox must not speak to the API server in the service account's name. */
export const serviceAccountToken: Rule<WithPod> = {
  ...shared,
  id: 'template/service-account-token',
  refuses: 'automountServiceAccountToken: true, and projected volumes with a service account token.',
  why: 'The code in a sandbox could act in the cluster with the rights of its service account.',
  relax: 'Set rules: {template/service-account-token: warn} in the configuration.',
  check({ object }) {
    const { podSpec, path } = blueprintOf(object)
    if (!podSpec) return []
    const violations: Violation[] = []
    if (podSpec.automountServiceAccountToken) {
      const message = 'a sandbox may not hold a token for the API server. Remove the field; it is then set to false.'
      violations.push({ field: `${path}.spec.automountServiceAccountToken`, message })
    }
    listOf(podSpec.volumes).forEach((volume, i) => {
      listOf(volume.projected?.sources).forEach((source, j) => {
        if (!source.serviceAccountToken) return
        const message = `volume ${volume.name} would give the sandbox a token of its service account. Remove the source.`
        violations.push({ field: `${path}.spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`, message })
      })
    })
    return violations
  },
}

/** Off until a list is configured. */
export const runtimeClass: Rule<WithPod> = {
  ...shared,
  id: 'template/runtime-class',
  refuses: 'A runtime class that admission.runtimeClasses does not list, once that list is set.',
  why: 'The runtime decides how strongly a sandbox is isolated.',
  relax: 'Add the class to admission.runtimeClasses; the empty string allows naming none.',
  check({ object }, { config }) {
    const { runtimeClasses } = config.admission
    const { podSpec, path } = blueprintOf(object)
    if (!podSpec || !runtimeClasses || runtimeClasses.includes(podSpec.runtimeClassName ?? '')) return []
    const found = podSpec.runtimeClassName
      ? `runtime class ${podSpec.runtimeClassName} is`
      : 'no runtime class is named, which is'
    const message = `${found} not allowed here. Use one of ${runtimeClasses.filter(Boolean).join(', ')}.`
    return [{ field: `${path}.spec.runtimeClassName`, message }]
  },
}

/** Off until a list is configured. A name without a registry means Docker Hub, as it does to the runtime. */
export const imageRegistry: Rule<WithPod> = {
  ...shared,
  id: 'template/image-registry',
  refuses: 'Images from a registry that admission.imageRegistries does not list, once that list is set.',
  why: 'Images from elsewhere have not passed the checks of the platform.',
  relax: 'Add the registry to admission.imageRegistries.',
  check({ object }, { config }) {
    const { imageRegistries } = config.admission
    const { podSpec, path } = blueprintOf(object)
    if (!podSpec || !imageRegistries) return []
    const images = [
      ...containersOf(podSpec).map(({ at, container }) => ({ at: `${at}.image`, image: container.image })),
      ...listOf(podSpec.volumes).map(({ image }, i) => ({
        at: `volumes[${i}].image.reference`,
        image: image?.reference,
      })),
    ]
    return images.flatMap(({ at, image }) => {
      if (
        typeof image !== 'string' ||
        !image ||
        imageRegistries.some((registry) => fullName(image).startsWith(`${registry.replace(/\/$/, '')}/`))
      )
        return []
      const message = `image ${image} comes from a registry that is not allowed here. Use one of ${imageRegistries.join(', ')}.`
      return [{ field: `${path}.spec.${at}`, message }]
    })
  },
}

function fullName(image: string): string {
  const [first = '', ...rest] = image.split('/')
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  if (hasRegistry) return image
  return rest.length > 0 ? `docker.io/${image}` : `docker.io/library/${image}`
}
