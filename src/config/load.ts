import { readFile } from 'node:fs/promises'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { parseCidr } from '../policy/address-ranges.ts'
import { modes } from '../policy/rule.ts'
import { rules } from '../policy/rules.ts'
import { durationMs } from './duration.ts'
import { nearest } from './nearest.ts'
import { ConfigSchema, type Config } from './schema.ts'

/** A configuration file that cannot be used. The message is one line: file, path, value, and the nearest valid choice. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly code: 'ConfigUnreadable' | 'ConfigInvalid'

  constructor(code: ConfigError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** The configuration in a file. Throws a {@link ConfigError} when it cannot be read or is not valid. */
export async function loadConfig(path: string): Promise<Config> {
  return parseConfig(await readConfigText(path), path)
}

/** The text of a configuration file. Throws a {@link ConfigError} with the code `ConfigUnreadable`. */
export async function readConfigText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string }
    throw new ConfigError(
      'ConfigUnreadable',
      `${path}: cannot be read (${code}). Check the path and its permissions.`,
      error,
    )
  }
}

const validate = new Ajv2020({ useDefaults: true, strict: true, allErrors: true, verbose: true }).compile<Config>(
  ConfigSchema,
)

/**
 * The configuration that `text` (YAML) describes, with every default filled in. `path` only names the file in messages.
 * Unknown keys, duplicate keys, values of a wrong type, unknown rule ids and malformed addresses are a {@link ConfigError}.
 */
export function parseConfig(text: string, path: string): Config {
  const fail = (at: string, problem: string) =>
    new ConfigError('ConfigInvalid', `${path}: ${at ? `${at}: ` : ''}${problem}`)
  const config = parseYaml(text, fail)
  if (!validate(config)) {
    const error = validate.errors?.[0]
    throw error ? fail(pathOf(error), explain(error)) : fail('', 'it is not valid')
  }
  for (const key of Object.keys(config.rules)) {
    if (!isRuleKey(key)) throw fail('rules', unknownChoice('rule', key, ruleKeys))
  }
  for (const [i, cidr] of config.network.extraBlockedCIDRs.entries()) {
    if (!parseCidr(cidr))
      throw fail(`network.extraBlockedCIDRs[${i}]`, `"${cidr}" is not in CIDR notation, such as 100.64.0.0/10.`)
  }
  const { defaultLifetime, maxLifetime } = config.claims
  if (defaultLifetime && maxLifetime && durationMs(defaultLifetime) > durationMs(maxLifetime)) {
    throw fail('claims.defaultLifetime', `"${defaultLifetime}" is longer than claims.maxLifetime, "${maxLifetime}".`)
  }
  return config
}

function parseYaml(text: string, fail: (at: string, problem: string) => ConfigError): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: true })
  const error = document.errors[0]
  if (error) {
    const { line, col } = lineCounter.linePos(error.pos[0])
    throw fail(`line ${line}, column ${col}`, error.message.replaceAll('\n', ' '))
  }
  const { contents } = document
  if (contents === null || (isScalar(contents) && contents.value === null)) return {}
  if (!isMap(contents)) throw fail('', 'it must be a mapping of options to values.')
  const config = document.toJS({ maxAliasCount: 100 }) as Record<string, unknown>
  // A section whose every line is commented out is null in YAML, and means what no section means.
  const isEmptySection = ([key, value]: [string, unknown]) => value === null && key in ConfigSchema.properties
  return Object.fromEntries(Object.entries(config).filter((entry) => !isEmptySection(entry)))
}

const families = new Set(rules.map(({ id }) => `${id.slice(0, id.indexOf('/'))}/*`))
const ruleKeys = ['*', ...families, ...rules.map(({ id }) => id)]

/** A rule id, or a beginning of one with `*` that at least one rule has. */
function isRuleKey(key: string): boolean {
  return ruleKeys.includes(key) || (key.endsWith('*') && rules.some(({ id }) => id.startsWith(key.slice(0, -1))))
}

/** `/admission/trustedUsers/0` as `admission.trustedUsers[0]`; an unknown key is named by its parent. */
function pathOf({ instancePath }: ErrorObject): string {
  return instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part), '')
}

function explain({ keyword, params, message = 'is not valid', data, parentSchema, instancePath }: ErrorObject): string {
  const value = JSON.stringify(data)
  switch (keyword) {
    case 'additionalProperties': {
      const { properties = {} } = parentSchema as { properties?: object }
      return unknownChoice('option', String(params['additionalProperty']), Object.keys(properties))
    }
    case 'enum':
      return unknownChoice('value', data, (params['allowedValues'] as unknown[]).map(String))
    case 'const':
      return unknownChoice('value', data, [String(params['allowedValue'])])
    case 'type':
      return instancePath.startsWith('/rules/')
        ? unknownChoice('value', data, modes)
        : `${value} must be ${articled(String(params['type']))}.`
    case 'pattern':
      return `${value} is not a duration. Write it as 90s, 30m, 1h30m or 7d.`
    default:
      return `${value} ${message}.`
  }
}

function articled(type: string): string {
  const plain = type === 'array' ? 'list' : type === 'object' ? 'mapping' : type
  return `${/^[aio]/.test(plain) ? 'an' : 'a'} ${plain}`
}

function unknownChoice(what: string, found: unknown, choices: readonly string[]): string {
  const best = typeof found === 'string' ? nearest(found, choices) : undefined
  const shown = typeof found === 'string' ? `"${found}"` : JSON.stringify(found)
  const advice = best
    ? `Did you mean "${best}"?`
    : `Choose ${choices.length > 8 ? 'one of docs/rules.md' : `one of ${choices.join(', ')}`}.`
  return `${shown} is not a known ${what}. ${advice}`
}
