import { defaultConfig, type Config } from '../../src/config/schema.ts'
import type { Sandbox, SandboxClaim, SandboxTemplate } from '../../src/api/kinds.ts'
import type { Facts, RuleContext, Subject, Subjects } from '../../src/policy/rule.ts'

export const now = Date.parse('2026-01-01T00:00:00Z')

export function context(facts: Facts = {}, config: Config = defaultConfig): RuleContext {
  return { now, config, facts }
}

export function configWith(change: (config: Config) => void): Config {
  const config = structuredClone(defaultConfig)
  change(config)
  return config
}

export function subject<K extends keyof Subjects>(
  kind: K,
  object: Subjects[K],
  more: Partial<Subject<K>> = {},
): Subject<K> {
  const operation = more.oldObject ? 'UPDATE' : 'CREATE'
  return { kind, operation, namespace: 'default', object, actor: 'user', username: 'alice', ...more }
}

export function claim(spec: Partial<SandboxClaim['spec']> = {}, metadata: SandboxClaim['metadata'] = {}): SandboxClaim {
  return { metadata: { name: 'task', ...metadata }, spec: { warmPoolRef: { name: 'python' }, ...spec } }
}

export function template(spec: Partial<SandboxTemplate['spec']> = {}): SandboxTemplate {
  return {
    metadata: { name: 'python' },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'x' }] } }, ...spec },
  }
}

export function sandbox(spec: Partial<Sandbox['spec']> = {}, metadata: Sandbox['metadata'] = {}): Sandbox {
  return {
    metadata: { name: 'box', ...metadata },
    spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'x' }] } }, ...spec },
  }
}
