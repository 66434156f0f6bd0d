import type { Finding } from '../policy/rule.ts'
import type { Manifest } from './check-manifests.ts'
import { isRefusal, type Judged, type LocatedFinding, type Verdict } from './check-verdicts.ts'
import type { Paint } from './paint.ts'

export const checkFormats = ['text', 'json', 'github'] as const
export type CheckFormat = (typeof checkFormats)[number]

/** What became of a finding, as a person reads it. */
const words = { enforce: 'refused', warn: 'warning', audit: 'audit' } as const
const colours = { enforce: 'red', warn: 'yellow', audit: 'dim' } as const

const reasonsLowered = {
  ratchet: 'it was so before',
  'break-glass': 'the user may break glass',
  namespace: 'the namespace asks for no more',
} as const

/** The report of a check, to be printed as it is. */
export function reportOf(judged: Judged, format: CheckFormat, paint: Paint): string {
  switch (format) {
    case 'text':
      return textOf(judged, paint)
    case 'json':
      return `${JSON.stringify(jsonOf(judged), undefined, 2)}\n`
    case 'github':
      return githubOf(judged)
    default:
      return format satisfies never
  }
}

/** `3 objects of other kinds were skipped: ConfigMap (2), Deployment`; undefined when there were none. */
export function skippedNote({ skipped }: Judged): string | undefined {
  if (skipped.length === 0) return undefined
  const kinds = Map.groupBy(skipped, ({ object }) => (typeof object.kind === 'string' ? object.kind : 'no kind'))
  const named = [...kinds].map(([kind, { length }]) => (length === 1 ? kind : `${kind} (${length})`))
  return `${counted(skipped.length, 'object')} of other kinds ${skipped.length === 1 ? 'was' : 'were'} skipped: ${named.join(', ')}`
}

function textOf({ verdicts }: Judged, paint: Paint): string {
  const files = Map.groupBy(
    verdicts.filter(({ findings }) => findings.length > 0),
    ({ manifest }) => manifest.file,
  )
  const sections = [...files].map(([file, inFile]) => {
    const objects = inFile.flatMap((verdict) => [
      `  document ${verdict.manifest.document}: ${nameOf(verdict)}`,
      ...verdict.findings.map((finding) => lineOf(finding, paint)),
    ])
    return [paint.bold(file), ...objects, ''].join('\n')
  })
  return [...sections, `${summaryOf(verdicts)}\n`].join('\n')
}

function lineOf({ mode, message, line, lowered }: LocatedFinding, paint: Paint): string {
  const because = lowered ? ` [${reasonsLowered[lowered]}]` : ''
  return `    ${paint[colours[mode]](words[mode].padEnd(7))}  line ${line}: ${message}${because}`
}

function nameOf({ manifest: { object }, namespace }: Verdict): string {
  const { name, generateName } = object.metadata
  return `${object.kind} ${namespace}/${name ?? `${generateName ?? ''}…`}`
}

function summaryOf(verdicts: readonly Verdict[]): string {
  const { objects, refused, warnings } = counts(verdicts)
  const rest = warnings > 0 ? `, ${counted(warnings, 'warning')}` : ''
  return `${counted(objects, 'object')} checked: ${refused === 0 ? 'none' : refused} refused${rest}.`
}

function counts(verdicts: readonly Verdict[]) {
  const ofMode = (wanted: Finding['mode']) =>
    verdicts.flatMap(({ findings }) => findings).filter(({ mode }) => mode === wanted).length
  return {
    objects: verdicts.length,
    refused: verdicts.filter(({ findings }) => findings.some(isRefusal)).length,
    warnings: ofMode('warn'),
    audits: ofMode('audit'),
  }
}

/** The shape is documented in docs/operations.md: fields may be added, none goes or changes its meaning. */
function jsonOf({ verdicts, skipped }: Judged) {
  const place = ({ file, document, object }: Manifest) => ({
    file,
    document,
    ...(object.apiVersion !== undefined && { apiVersion: object.apiVersion }),
    ...(object.kind !== undefined && { kind: object.kind }),
    ...(object.metadata.name !== undefined && { name: object.metadata.name }),
  })
  return {
    summary: { ...counts(verdicts), skipped: skipped.length },
    objects: verdicts.map(({ manifest, operation, namespace, findings }) => ({
      ...place(manifest),
      namespace,
      operation,
      allowed: !findings.some(isRefusal),
      findings: findings.map(({ rule, mode, lowered, field, line, message }) => ({
        rule,
        mode,
        ...(lowered && { lowered }),
        field,
        line,
        message,
      })),
    })),
    skipped: skipped.map(place),
  }
}

const githubCommands = { enforce: 'error', warn: 'warning', audit: 'notice' } as const

/** Workflow commands, which become annotations on the lines of a pull request. */
function githubOf({ verdicts }: Judged): string {
  const commands = verdicts.flatMap(({ manifest: { file }, findings }) =>
    findings.map(({ mode, line, rule, message }) => {
      const properties = Object.entries({ file, line: String(line), title: rule })
      const written = properties.map(([key, value]) => `${key}=${escaped(value, /[%\r\n:,]/g)}`).join(',')
      return `::${githubCommands[mode]} ${written}::${escaped(message, /[%\r\n]/g)}`
    }),
  )
  return [...commands, summaryOf(verdicts), ''].join('\n')
}

/** Workflow commands take special characters as `%` and two hexadecimal digits. */
function escaped(text: string, special: RegExp): string {
  return text.replaceAll(special, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}

function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`
}
