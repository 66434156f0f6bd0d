import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Kubectl } from '../../devcluster/kubectl.ts'
import type { StagedFixture } from './fixture-stage.ts'

/** What kubectl made of a fixture's change. */
export interface Printed {
  readonly accepted: boolean
  /** Standard error: the refusal, or warnings. */
  readonly stderr: string
}

interface KubectlSession {
  readonly kubectl: Kubectl
  /** For manifests. */
  readonly folder: string
}

/**
 * Has kubectl make each change, without effect where kubectl can ask for that. Changes of the same sort share one call,
 * since kubectl takes long to start; `alone` gives each its own, so that a warning can be told whose it is.
 */
export async function verdicts(
  session: KubectlSession,
  fixtures: readonly StagedFixture[],
  { alone }: { alone: boolean },
): Promise<Map<string, Printed>> {
  const [special, plain] = partition(fixtures, ({ subject }) => subject.subresource !== undefined)
  const groups = [...Map.groupBy(plain, sortOf).values()].flatMap((group) =>
    alone ? group.map((one) => [one]) : [group],
  )
  const answers = new Map<string, Printed>()
  for (const group of groups) {
    for (const [path, printed] of await askTogether(session, group)) answers.set(path, printed)
  }
  for (const fixture of special) answers.set(fixture.path, await askSubresource(session, fixture))
  return answers
}

const verbs = { CREATE: 'create', UPDATE: 'replace', DELETE: 'delete' } as const

/** What a call of kubectl has in common. */
const sortOf = ({ subject, header, verdict }: StagedFixture): string =>
  [verbs[subject.operation], verdict, subject.username, ...(header.groups ?? [])].join(' ')

async function askTogether(session: KubectlSession, group: readonly StagedFixture[]): Promise<[string, Printed][]> {
  const [first] = group
  if (!first) return []
  const files = await Promise.all(group.map(async (fixture) => writeManifest(session, fixture)))
  const verb = verbs[first.subject.operation]
  const flags = ['--dry-run=server', ...(verb === 'delete' ? ['--wait=false'] : ['--validate=false'])]
  const { code, stderr } = await session.kubectl([
    verb,
    ...flags,
    ...asOf(first),
    ...files.flatMap((file) => ['-f', file]),
  ])
  if (group.length === 1) return [[first.path, { accepted: code === 0, stderr }]]

  const refusals = refusalsByFile(stderr)
  // A single "invalid" in a call is printed without its file.
  if (code !== 0 && refusals.size === 0) {
    const each = await Promise.all(group.map((fixture) => askTogether(session, [fixture])))
    return each.flat()
  }
  return group.map(({ path }, i) => {
    const refusal = refusals.get(basename(files[i] ?? ''))
    return [path, { accepted: refusal === undefined, stderr: refusal ?? '' }]
  })
}

async function writeManifest({ folder }: KubectlSession, { namespace, manifest }: StagedFixture): Promise<string> {
  await mkdir(folder, { recursive: true })
  const file = join(folder, `${namespace}.yaml`)
  await writeFile(file, JSON.stringify(manifest))
  return file
}

/** `Error from server (Forbidden): error when creating "…/fixture-1.yaml": admission webhook …`, over several lines. */
function refusalsByFile(stderr: string): Map<string, string> {
  const errors = stderr.split(/^(?=Error from server)/m).filter((text) => text.startsWith('Error from server'))
  return new Map(
    errors.flatMap((error) => {
      const file = /error when \w+ "([^"]+)"/.exec(error)?.[1]
      return file ? [[basename(file), error] as const] : []
    }),
  )
}

async function askSubresource({ kubectl }: KubectlSession, fixture: StagedFixture): Promise<Printed> {
  const { subject, manifest, namespace } = fixture
  const { kind, metadata, spec } = manifest as {
    kind: string
    metadata: { name: string }
    spec: Record<string, unknown>
  }
  const where = [`--namespace=${namespace}`, ...asOf(fixture)]
  if (subject.subresource === 'scale') {
    const { code, stderr } = await kubectl([
      'scale',
      kind,
      metadata.name,
      `--replicas=${String(spec['replicas'])}`,
      ...where,
    ])
    return { accepted: code === 0, stderr }
  }
  const body = { apiVersion: 'v1', kind: 'EphemeralContainers', metadata: { name: metadata.name, namespace } }
  const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}/ephemeralcontainers`
  const input = JSON.stringify({ ...body, ephemeralContainers: spec['ephemeralContainers'] })
  const { code, stderr } = await kubectl(['replace', `--raw=${path}?dryRun=All`, '-f', '-', ...asOf(fixture)], {
    input,
  })
  return { accepted: code === 0, stderr }
}

/** Impersonation: the group of everybody is not added to groups that are named. */
function asOf({ subject, header }: StagedFixture): string[] {
  const groups = header.groups ? ['system:authenticated', ...header.groups] : []
  return [`--as=${subject.username}`, ...groups.map((group) => `--as-group=${group}`)]
}

function partition<T>(all: readonly T[], test: (each: T) => boolean): [T[], T[]] {
  return [all.filter(test), all.filter((each) => !test(each))]
}
