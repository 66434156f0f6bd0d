import { Type, type Static, type TSchema } from 'typebox'
import { durationPattern } from './duration.ts'
import { envReserved, runtimeAnnotations } from './default-lists.ts'

/**
 * The configuration file, as JSON Schema with its TypeScript type. Each option carries the description and the default
 * that `docs/configuration.md` prints; the loader fills the defaults in, so that `Config` has no gaps.
 */

const count = (description: string, options: { default?: number; minimum?: number; maximum?: number } = {}) =>
  Type.Integer({ minimum: 0, description, ...options })
const flag = (description: string, fallback: boolean) => Type.Boolean({ description, default: fallback })
const names = (description: string, fallback: readonly string[] = []) =>
  Type.Array(Type.String({ minLength: 1 }), { description, default: [...fallback], uniqueItems: true })
const duration = (description: string, fallback: string) =>
  Type.String({
    pattern: durationPattern,
    description: `${description} A duration such as 90s, 30m, 1h30m or 7d. Default: ${fallback}.`,
  })

/** A part of the file: closed to unknown keys, and complete when it is left out. */
function section<P extends Record<string, TSchema>>(description: string, properties: P) {
  return Type.Object(properties, { description, default: {}, additionalProperties: false })
}

const mode = { type: 'string', enum: ['enforce', 'warn', 'audit', 'off'] }

const Admission = section('Who is trusted, and what the rules allow.', {
  lockedNamespaces: names('Namespaces whose label sandgate.dev/admission is ignored.'),
  trustedUsers: names('User names that may restore objects with reserved keys and owners, e.g. a backup tool.'),
  controllers: names('User names of the controllers. Whoever can act as one of them can write every reserved field.', [
    'system:serviceaccount:sandgate-system:sandgate',
  ]),
  breakGlassGroup: Type.Optional(
    Type.String({ minLength: 1, description: 'Members of this group are warned instead of refused. Default: nobody.' }),
  ),
  envReserved: names('Variables that no claim may set. A trailing * matches any ending.', envReserved),
  runtimeAnnotationDomains: names(
    'Annotations that no claim may put on its Pod: a domain (with its subdomains), or the beginning of a key with a trailing *.',
    runtimeAnnotations,
  ),
  labelDomains: names('Domains (with their subdomains) of labels that a claim may put on its Pod.', [
    'sandbox.users.io',
  ]),
  allowedVolumeSources: Type.Array(
    Type.Unsafe<'volumeName' | 'selector' | 'dataSource' | 'dataSourceRef'>({
      type: 'string',
      enum: ['volumeName', 'selector', 'dataSource', 'dataSourceRef'],
    }),
    {
      description: 'Fields of a PersistentVolumeClaim spec, naming existing data, that a claim may use.',
      default: [],
      uniqueItems: true,
    },
  ),
  podSecurity: Type.Unsafe<'baseline' | 'restricted'>({
    type: 'string',
    enum: ['baseline', 'restricted'],
    default: 'baseline',
    description: 'The Pod Security Standard that sandboxes meet.',
  }),
  runtimeClasses: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Runtime classes that sandboxes may use; the empty string stands for none named. Default: any.',
      uniqueItems: true,
    }),
  ),
  imageRegistries: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Beginnings of image names, up to a slash: registry.example.com or registry.example.com/team. Default: any.',
      uniqueItems: true,
    }),
  ),
})

const Claims = section('Lifetimes and quotas of claims.', {
  defaultTtlAfterFinished: Type.Optional(
    duration('Given to claims without ttlSecondsAfterFinished.', 'none, they stay'),
  ),
  defaultLifetime: Type.Optional(duration('Gives claims without shutdownTime one, counted from creation.', 'none')),
  maxLifetime: Type.Optional(
    duration('The furthest shutdownTime after creation; a claim without one is refused.', 'no limit'),
  ),
  maxPerNamespace: Type.Optional(count('Live claims in a namespace. Default: no limit.')),
  maxCreatesPerMinute: Type.Optional(
    count('Claims that one user may create in a minute through one gate replica. Default: no limit.', { minimum: 1 }),
  ),
  rebindAfterLoss: flag('Whether a claim whose sandbox has vanished gets another.', true),
})

const Pools = section('Warm pools and sandbox sets.', {
  maxReplicas: Type.Optional(count('The most replicas a pool may ask for. Default: no limit.')),
  maxRefillPerSecond: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description: 'Sandboxes created per second and pool, once the stock of one second is used. Default: no limit.',
    }),
  ),
  maxBatch: count('Sandboxes created or deleted in one pass over a pool.', { default: 300, minimum: 1 }),
  readinessGraceSeconds: count('How long a pooled sandbox may be unready before it is replaced.', {
    default: 300,
    minimum: 1,
  }),
})

const Sandboxes = section('Sandboxes and the defaults they get where their author left a field unset.', {
  controller: Type.Unsafe<'builtin' | 'external'>({
    type: 'string',
    enum: ['builtin', 'external'],
    default: 'builtin',
    description: 'Who runs Sandboxes: builtin is this program, external another implementation of the same API.',
  }),
  recreateFailedPods: flag(
    'Replaces the Pod of a sandbox when it has failed; otherwise it stays for inspection.',
    false,
  ),
  enableServiceLinksDefault: flag(
    'Sets enableServiceLinks: false, since the variables would list the services of the namespace.',
    true,
  ),
  seccompDefault: flag('Sets the seccomp profile RuntimeDefault for the Pod.', true),
  clusterDomain: Type.String({ minLength: 1, default: 'cluster.local', description: 'DNS domain of the cluster.' }),
})

const Network = section('The network of sandboxes.', {
  routerNamespace: Type.String({
    minLength: 1,
    default: 'agent-sandbox-system',
    description: 'Namespace of the router, from which the default policy accepts connections.',
  }),
  extraBlockedCIDRs: names('Further address ranges, in CIDR notation, that the default policy keeps sandboxes from.'),
})

export const ConfigSchema = Type.Object(
  {
    apiVersion: Type.Literal('sandgate.dev/v1alpha1', {
      default: 'sandgate.dev/v1alpha1',
      description: 'Version of this format.',
    }),
    kind: Type.Literal('SandgateConfiguration', { default: 'SandgateConfiguration', description: 'This format.' }),
    rules: Type.Unsafe<Readonly<Record<string, 'enforce' | 'warn' | 'audit' | 'off'>>>({
      type: 'object',
      additionalProperties: mode,
      default: {},
      description: 'Mode by rule id, or by a family such as template/*. An exact id beats a family.',
    }),
    admission: Admission,
    claims: Claims,
    pools: Pools,
    sandboxes: Sandboxes,
    network: Network,
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'SandgateConfiguration',
    description: 'Configuration of sandgate. Every option has a default; an empty file is valid.',
    additionalProperties: false,
  },
)

/** The configuration with every default filled in. */
export type Config = Static<typeof ConfigSchema>
/** What the rules read. */
export type PolicyConfig = Config

/** The defaults that a schema declares, for all its members. */
function defaultOf(schema: TSchema): unknown {
  const { default: own, properties } = schema as { default?: unknown; properties?: Record<string, TSchema> }
  if (!properties) return structuredClone(own)
  const members = Object.entries(properties).map(([key, member]) => [key, defaultOf(member)] as const)
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

/** What an empty file means. */
export const defaultConfig: Config = defaultOf(ConfigSchema) as Config
