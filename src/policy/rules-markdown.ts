import type { Rule } from './rule.ts'

const families: Readonly<Record<string, string>> = {
  claim: 'Claims',
  template: 'Templates',
  pool: 'Pools',
  set: 'Sandbox sets',
  sandbox: 'Sandboxes',
  names: 'Names',
  pod: 'Pods',
}

/** `docs/rules.md`: every rule with what it refuses, why, its default mode and how to relax it. */
export function rulesMarkdown(rules: readonly Rule[]): string {
  const byFamily = Map.groupBy(rules, ({ id }) => id.slice(0, id.indexOf('/')))
  const chapters = [...byFamily].flatMap(([family, members]) => [
    `## ${families[family] ?? family}`,
    ...members.map((rule) => chapter(rule)),
  ])
  return `${[introduction, ...chapters].join('\n\n')}\n`
}

const introduction = `# Rules

<!-- Generated from the rule table in src/policy/rules.ts; do not edit. -->

Each rule has a mode: **enforce** denies the request, **warn** has kubectl print a warning, **audit** records the finding
in the audit log and the metrics, **off** does not run the rule. The configuration sets the mode by rule id or family:

\`\`\`yaml
rules:
  template/*: warn
  template/pod-security: enforce
\`\`\`

A namespace can lower the rules that hold in it with the label \`sandgate.dev/admission: warn\` (or \`audit\`, \`off\`), unless
\`admission.lockedNamespaces\` lists it. Rules marked ◆ protect other tenants: no namespace lowers them. They judge what
changed and who changed it.

An object that broke a rule before it was updated may be updated all the same: the finding is then a warning.`

function chapter(rule: Rule): string {
  const { id, kinds, on, subresources, integrity, mode, refuses, why, relax } = rule
  const also = (subresources ?? []).filter(Boolean).map((subresource) => `/${subresource}`)
  return [
    `### ${id}${integrity ? ' ◆' : ''}`,
    `${refuses} ${why}`,
    `- Default: **${mode}**\n- Judges: ${kinds.join(', ')}${also.length > 0 ? ` (${also.join(', ')})` : ''} on ${on.join(', ')}\n- To relax: ${relax}`,
  ].join('\n\n')
}
