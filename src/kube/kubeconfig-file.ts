import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import type { Cluster, Context, User } from '@kubernetes/client-node'
import { parseDocument } from 'yaml'
import { KubeConfigError } from './config-error.ts'

/** A configuration that has been read, and what is needed to use it. */
export interface LoadedConfig {
  readonly config: KubeConfig
  /** For messages. */
  readonly origin: string
  /** A bearer token that is kept in a file of its own and replaced there. */
  readonly tokenFile?: string
}

/** The keys of a kubeconfig's user that client-node does not read. */
interface RawUser {
  name?: string
  user?: { tokenFile?: string; 'as-groups'?: unknown; 'as-uid'?: unknown; 'as-user-extra'?: unknown } | null
}

interface ParsedFile {
  readonly path: string
  readonly config: KubeConfig
  readonly rawUsers: readonly RawUser[]
}

/**
 * Reads kubeconfig files into one, as kubectl does: the first file that has an entry of a name, or a current context,
 * decides. Checks that the context, its cluster and its user are there.
 *
 * @throws {KubeConfigError}
 */
export function readKubeconfigs(paths: readonly string[], contextName: string | undefined): LoadedConfig {
  const files = paths.map((path) => parseFile(path))
  const origin = paths.join(', ')
  const config = merge(files.map((file) => file.config))
  const currentContext = contextName ?? config.currentContext
  if (!currentContext) {
    throw new KubeConfigError(
      'NoCurrentContext',
      `${origin}: no current-context is set; set one or name one of: ${names(config.contexts)}`,
    )
  }
  config.setCurrentContext(currentContext)

  const context = config.contexts.find(({ name }) => name === currentContext)
  if (!context) {
    throw new KubeConfigError(
      'ContextNotFound',
      `${origin}: there is no context ${quoted(currentContext)}; there is: ${names(config.contexts)}`,
    )
  }
  if (!config.clusters.some(({ name }) => name === context.cluster)) {
    throw new KubeConfigError(
      'ClusterNotFound',
      `${origin}: context ${quoted(currentContext)} names cluster ${quoted(context.cluster)}, which is not in the file`,
    )
  }
  const user = config.users.find(({ name }) => name === context.user)
  if (!user) {
    throw new KubeConfigError(
      'UserNotFound',
      `${origin}: context ${quoted(currentContext)} names user ${quoted(context.user)}, which is not in the file`,
    )
  }

  const file = files.find(({ config: own }) => own.users.includes(user))!
  const raw = file.rawUsers.find(({ name }) => name === user.name)?.user
  for (const key of ['as-groups', 'as-uid', 'as-user-extra'] as const) {
    // Left out, the requests would be made with other rights than the file says.
    if (raw?.[key] === undefined) continue
    throw new KubeConfigError('Unsupported', `${file.path}: user ${quoted(user.name)}: ${key} is not supported`)
  }
  const tokenFile = raw?.tokenFile && resolve(dirname(file.path), raw.tokenFile)
  return { config, origin, ...(tokenFile && { tokenFile }) }
}

function parseFile(path: string): ParsedFile {
  const text = readText(path)
  // Without `prettyErrors` the errors do not quote the file, which holds credentials.
  const document = parseDocument(text, { prettyErrors: false })
  const [error] = document.errors
  if (error) {
    const line = text.slice(0, error.pos[0]).split('\n').length
    throw new KubeConfigError('Invalid', `${path}: not YAML: ${error.code} in line ${line}`)
  }
  const content: unknown = document.toJS()
  if (typeof content !== 'object' || content === null || !('clusters' in content || 'contexts' in content)) {
    throw new KubeConfigError('Invalid', `${path}: not a kubeconfig: it has neither clusters nor contexts`)
  }

  const config = new KubeConfig()
  try {
    config.loadFromString(JSON.stringify(content))
  } catch (cause) {
    // Messages such as "clusters[0].cluster.server is missing".
    throw new KubeConfigError('Invalid', `${path}: ${cause instanceof Error ? cause.message : 'unreadable'}`, cause)
  }
  config.makePathsAbsolute(dirname(resolve(path)))
  for (const { exec } of config.users as { exec?: { command?: string } | null }[]) {
    // As for kubectl, a plugin named by a relative path lies beside the file; a bare name is looked up in PATH.
    if (exec?.command?.includes('/') && !isAbsolute(exec.command)) exec.command = join(dirname(path), exec.command)
  }
  const rawUsers = (content as { users?: RawUser[] }).users ?? []
  return { path, config, rawUsers }
}

function merge(configs: readonly KubeConfig[]): KubeConfig {
  const merged = new KubeConfig()
  merged.loadFromOptions({
    clusters: firstOfEachName<Cluster>(configs.flatMap(({ clusters }) => clusters)).map(permitPlainHttp),
    users: firstOfEachName<User>(configs.flatMap(({ users }) => users)),
    contexts: firstOfEachName<Context>(configs.flatMap(({ contexts }) => contexts)),
    currentContext: configs.map((config) => config.currentContext).find((name) => Boolean(name)),
  })
  return merged
}

/** Without TLS there is no certificate to verify, but client-node insists on being told not to. */
function permitPlainHttp(cluster: Cluster): Cluster {
  return cluster.server.startsWith('http:') ? { ...cluster, skipTLSVerify: true } : cluster
}

function firstOfEachName<T extends { name: string }>(entries: readonly T[]): T[] {
  const byName = new Map<string, T>()
  for (const entry of entries) if (!byName.has(entry.name)) byName.set(entry.name, entry)
  return [...byName.values()]
}

/** @throws {KubeConfigError} */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new KubeConfigError('Unreadable', `${path}: ${explainUnreadable(cause)}`, cause)
  }
}

function explainUnreadable(cause: unknown): string {
  const code = (cause as NodeJS.ErrnoException).code
  switch (code) {
    case 'ENOENT':
      return 'no such file'
    case 'EACCES':
      return 'no permission to read it'
    case 'EISDIR':
      return 'it is a directory'
    default:
      return `cannot be read (${code ?? 'unknown'})`
  }
}

function names(entries: readonly { name: string }[]): string {
  return entries.map(({ name }) => name).join(', ') || 'none'
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
