import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** Who did what to which object, once per request, when it is over; a watch already when it begins. */
export const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'None', nonResourceURLs: ['/*'] }, { level: 'Metadata' }],
}

/** One request as the API server's audit log has it. */
export interface AuditedRequest {
  /** `create`, `update`, `patch`, `delete`, `get`, `list`, `watch`… */
  readonly verb: string
  /** Plural, with the subresource: `pods`, `pods/status`. */
  readonly resource: string
  readonly namespace?: string
  /** Absent for lists and for creations that leave the name to the server. */
  readonly name?: string
  /** HTTP status of the reply. */
  readonly code: number
  readonly userAgent?: string
  /** What admission and authorization noted; the keys of a webhook begin with its name and a slash. */
  readonly annotations?: Readonly<Record<string, string>>
  /** When the request arrived, milliseconds since the epoch. */
  readonly receivedAt: number
  /** From arrival to the reply's end, in milliseconds; for a watch, to its beginning. */
  readonly durationMs: number
}

interface AuditLine {
  auditID: string
  verb: string
  user: { username: string }
  /** As whom the user acted, by impersonation. */
  impersonatedUser?: { username: string }
  userAgent?: string
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string }
  responseStatus?: { code?: number }
  annotations?: Record<string, string>
  requestReceivedTimestamp: string
  stageTimestamp: string
}

/**
 * Reads from an audit log what `user` (or somebody in its name) asked for, oldest first; `since` (milliseconds since the epoch) leaves out what
 * arrived before.
 */
export async function readAuditLog(file: string, user: string, since = 0): Promise<AuditedRequest[]> {
  const found = new Map<string, AuditedRequest>()
  for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    // The quick test spares parsing what others did: the log of a big run has a hundred thousand lines.
    if (!text.includes(JSON.stringify(user))) continue
    const line = parse(text)
    const receivedAt = line && Date.parse(line.requestReceivedTimestamp)
    if (!line || userOf(line) !== user || receivedAt === undefined || receivedAt < since) continue
    // A watch is logged when it begins and again when it ends; it is one request.
    if (!found.has(line.auditID)) found.set(line.auditID, requestOf(line, receivedAt))
  }
  return [...found.values()].toSorted((a, b) => a.receivedAt - b.receivedAt)
}

/** The last line may be only half written. */
function parse(text: string): AuditLine | undefined {
  try {
    return JSON.parse(text) as AuditLine
  } catch {
    return undefined
  }
}

function userOf({ user, impersonatedUser }: AuditLine): string {
  return (impersonatedUser ?? user).username
}

function requestOf(line: AuditLine, receivedAt: number): AuditedRequest {
  const { resource = '', subresource, namespace, name } = line.objectRef ?? {}
  return {
    verb: line.verb,
    resource: subresource ? `${resource}/${subresource}` : resource,
    ...(namespace && { namespace }),
    ...(name && { name }),
    code: line.responseStatus?.code ?? 0,
    ...(line.userAgent && { userAgent: line.userAgent }),
    ...(line.annotations && { annotations: line.annotations }),
    receivedAt,
    durationMs: Date.parse(line.stageTimestamp) - receivedAt,
  }
}

/** How many requests there are of each kind, for instance `{ 'create sandboxes': 3, 'patch sandboxclaims/status': 1 }`. */
export function tally(requests: readonly AuditedRequest[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { verb, resource } of requests) {
    const kind = `${verb} ${resource}`
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}
