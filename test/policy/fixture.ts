import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { nameHash, poolHash } from '../../src/api/hash.ts'
import type { NetworkPolicy, Pod } from '../../src/api/core.ts'
import type { Sandbox, SandboxClaim, SandboxSet, SandboxTemplate, SandboxWarmPool } from '../../src/api/kinds.ts'
import { parseConfig } from '../../src/config/load.ts'
import { controllerOf, type KubeObject } from '../../src/kube/object.ts'
import { actorOf } from '../../src/policy/actor.ts'
import type { Facts, Known, Mode, Pool, RuleContext, Subject } from '../../src/policy/rule.ts'

/** The format is described in test/fixtures/README.md. */
interface Header {
  operation?: Subject['operation']
  subresource?: NonNullable<Subject['subresource']>
  user?: string
  groups?: string[]
  now?: string
  config?: object
  facts?: Partial<Facts>
  field?: string
  message?: string
  mode?: Mode
  also?: string[]
}

export interface Fixture {
  readonly path: string
  readonly rule: string
  readonly verdict: 'allow' | 'deny'
  readonly header: Header
  /** The file's manifests: companions, for an UPDATE the object as it was, and last the subject. */
  readonly documents: readonly KubeObject[]
  readonly subject: Subject
  readonly context: RuleContext
}

const root = join(import.meta.dirname, '../fixtures')

export function loadFixtures(): Fixture[] {
  return globSync('*/*/{allow,deny}/*.yaml', { cwd: root }).toSorted().map(loadFixture)
}

function loadFixture(path: string): Fixture {
  const [family, name, verdict] = path.split('/')
  const text = readFileSync(join(root, path), 'utf8')
  const headerLines = text.split('\n').filter((line) => line.startsWith('#|'))
  const header = (parse(headerLines.map((line) => line.slice(2)).join('\n')) ?? {}) as Header
  const documents = parseAllDocuments(text).map((document) => document.toJS() as KubeObject)
  const { operation = 'CREATE' } = header
  const object = documents.at(-1)
  const oldObject = operation === 'UPDATE' ? documents.at(-2) : undefined
  if (!object?.kind) throw new Error(`${path} has no subject`)
  const companions = documents.slice(0, operation === 'UPDATE' ? -2 : -1)
  const config = parseConfig(JSON.stringify(header.config ?? {}), path)
  const username = header.user ?? 'alice'
  const subject = {
    kind: object.kind,
    operation,
    ...(header.subresource && { subresource: header.subresource }),
    namespace: object.metadata.namespace ?? 'default',
    object,
    ...(oldObject && { oldObject }),
    actor: actorOf({ username, groups: header.groups ?? [] }, config),
    username,
  } as Subject
  const facts = { ...factsOf(subject, companions), ...header.facts }
  const now = Date.parse(header.now ?? '2026-01-01T00:00:00Z')
  return {
    path,
    rule: `${family}/${name}`,
    verdict: verdict as 'allow' | 'deny',
    header,
    documents,
    subject,
    context: { now, config, facts },
  }
}

/** What the gate would have gathered in a cluster that holds nothing but the companions. */
function factsOf({ kind, object }: Subject, companions: readonly KubeObject[]): Partial<Facts> {
  const find = <T extends KubeObject>(wanted: string, name: string | undefined): Known<T> => {
    const found = companions.find((other) => other.kind === wanted && other.metadata.name === name)
    return found ? { kind: 'found', value: found as T } : { kind: 'missing' }
  }
  const templateOf = (pool: Pool): Known<SandboxTemplate> => {
    if ('sandboxTemplateRef' in pool.spec) return find('SandboxTemplate', pool.spec.sandboxTemplateRef.name)
    const { template, templateRef } = (pool as SandboxSet).spec
    if (templateRef) return find('SandboxTemplate', templateRef.name)
    return template ? { kind: 'found', value: { ...pool, spec: { podTemplate: template } } } : { kind: 'missing' }
  }
  const spaceOf = (other: KubeObject) => (other.kind === 'SandboxSet' ? 'SandboxWarmPool' : other.kind)
  const hashOf = ({ kind: of, metadata: { name = '' } }: KubeObject) =>
    of === 'SandboxSet' || of === 'SandboxWarmPool' ? poolHash(of, name) : nameHash(name)
  const twin = companions.find((other) => spaceOf(other) === spaceOf(object) && hashOf(other) === hashOf(object))
  const sameHash: Known<KubeObject> = twin ? { kind: 'found', value: twin } : { kind: 'missing' }

  switch (kind) {
    case 'SandboxClaim': {
      const { warmPoolRef } = (object as SandboxClaim).spec
      const pool = find<Pool>(warmPoolRef.kind ?? 'SandboxWarmPool', warmPoolRef.name)
      return {
        pool,
        ...(pool.kind === 'found' && { template: templateOf(pool.value) }),
        sandboxOfName: find<Sandbox>('Sandbox', object.metadata.name),
      }
    }
    case 'SandboxTemplate':
      return {
        networkPolicy: find<NetworkPolicy>('NetworkPolicy', `${object.metadata.name}-network-policy`),
        poolsOfTemplate: companions
          .filter(({ kind: of, ...other }) => of === 'SandboxWarmPool' && refersTo(other, object.metadata.name))
          .map(({ metadata }) => metadata.name ?? ''),
        sameHash,
      }
    case 'SandboxWarmPool':
    case 'SandboxSet':
      return { template: templateOf(object as Pool), sameHash }
    case 'Sandbox':
      return { owningClaim: find<SandboxClaim>('SandboxClaim', controllerOf(object)?.name), sameHash }
    case 'Pod':
      return { pod: find<Pod>('Pod', object.metadata.name) }
    default:
      return kind satisfies never
  }
}

function refersTo(object: KubeObject, template: string | undefined): boolean {
  return (object as SandboxWarmPool).spec.sandboxTemplateRef.name === template
}
