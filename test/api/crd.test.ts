import t from 'tap'
import { Type } from 'typebox'
import { crdOf } from '../../src/api/crd.ts'
import type { Kind } from '../../src/api/kind.ts'
import {
  kinds,
  sandboxClaimKind,
  sandboxSetKind,
  sandboxTemplateKind,
  sandboxWarmPoolKind,
} from '../../src/api/kinds.ts'

type Node = { [keyword: string]: unknown }

t.test('every node of a schema is structural: it has a type, or is an int-or-string', async (t) => {
  for (const kind of kinds) {
    for (const [path, node] of nodesOf(schemaOf(kind))) {
      t.ok('type' in node || node['x-kubernetes-int-or-string'] === true, `${kind.kind}${path}`)
    }
  }
})

t.test('an int-or-string has exactly the form that the API server accepts without a type', async (t) => {
  const nodes = nodesOf(schemaOf(sandboxSetKind)).filter(([, node]) => node['x-kubernetes-int-or-string'])
  t.equal(nodes.length, 2)
  for (const [path, node] of nodes) {
    t.same(node['anyOf'], [{ type: 'integer' }, { type: 'string' }], path)
    t.notOk('type' in node, path)
  }
})

t.test('keywords that a structural schema does not know are left out', async (t) => {
  const kind: Kind = {
    ...sandboxTemplateKind,
    spec: Type.Object({ name: Type.String({ $id: 'name', title: 'Name', examples: ['a'], minLength: 1 }) }),
  }
  const spec = nodesOf(schemaOf(kind)).find(([path]) => path === '.spec.name')
  t.same(spec?.[1], { type: 'string', minLength: 1 })
})

t.test('defaults, required fields and list types come through', async (t) => {
  const pool = new Map(nodesOf(schemaOf(sandboxWarmPoolKind)))
  t.equal(pool.get('.spec.replicas')?.['default'], 1)
  t.same(pool.get('.spec')?.['required'], ['sandboxTemplateRef'])
  t.match(pool.get('.status.conditions'), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  })
  const template = new Map(nodesOf(schemaOf(sandboxTemplateKind)))
  t.equal(template.get('.spec.podTemplate.spec')?.['x-kubernetes-preserve-unknown-fields'], true)
  t.equal(template.get('.spec.envVarsInjectionPolicy')?.['default'], 'Disallowed')
})

t.test('every kind has a status subresource except the template', async (t) => {
  for (const kind of kinds) {
    const { subresources } = versionOf(kind)
    t.equal(subresources === undefined, kind === sandboxTemplateKind, kind.kind)
  }
})

t.test('the pools have a scale subresource with a selector, for kubectl scale and autoscalers', async (t) => {
  for (const kind of [sandboxWarmPoolKind, sandboxSetKind]) {
    t.same(versionOf(kind).subresources, {
      status: {},
      scale: {
        specReplicasPath: '.spec.replicas',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      },
    })
  }
  t.same(versionOf(sandboxClaimKind).subresources, { status: {} })
})

t.test('a definition is small enough for the annotation that kubectl apply keeps', async (t) => {
  for (const kind of kinds) t.ok(JSON.stringify(crdOf(kind)).length < 16_384, kind.kind)
})

t.test('names follow the rule that the API server enforces, plural dot group', async (t) => {
  for (const kind of kinds) {
    const crd = crdOf(kind)
    t.equal(crd.metadata.name, `${kind.plural}.${kind.group}`)
    t.match(crd.spec['names'], {
      kind: kind.kind,
      plural: kind.plural,
      singular: kind.singular,
      categories: ['sandgate'],
    })
  }
})

interface Version {
  readonly subresources?: object
  readonly schema: { readonly openAPIV3Schema: Node }
}

function versionOf(kind: Kind): Version {
  const [version] = crdOf(kind).spec['versions'] as Version[]
  if (!version) throw new Error(`${kind.kind} has no version`)
  return version
}

function schemaOf(kind: Kind): Node {
  return versionOf(kind).schema.openAPIV3Schema
}

/** Every node of a schema with its path, the root's being empty. */
function nodesOf(node: Node, path = ''): [string, Node][] {
  const properties = Object.entries((node['properties'] ?? {}) as Record<string, Node>)
  const inner = properties.flatMap(([name, child]) => nodesOf(child, `${path}.${name}`))
  const items = node['items'] ? nodesOf(node['items'] as Node, `${path}[]`) : []
  const values = node['additionalProperties'] ? nodesOf(node['additionalProperties'] as Node, `${path}{}`) : []
  return [[path, node], ...inner, ...items, ...values]
}
