import { ConfigSchema } from './schema.ts'

interface OptionSchema {
  readonly type?: string
  readonly const?: string
  readonly enum?: readonly string[]
  readonly items?: OptionSchema
  readonly properties?: Readonly<Record<string, OptionSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | OptionSchema
  readonly default?: unknown
  readonly description?: string
}

/** The JSON Schema of the configuration file for editors: like the loader's, but nothing is required. */
export function configurationJsonSchema(): object {
  return withoutRequired(ConfigSchema as OptionSchema)
}

function withoutRequired({ required: _required, properties, ...schema }: OptionSchema): OptionSchema {
  if (!properties) return structuredClone(schema)
  const members = Object.entries(properties).map(([key, member]) => [key, withoutRequired(member)] as const)
  return { ...schema, properties: Object.fromEntries(members) }
}

/** `docs/configuration.md`: every option with its type, default and meaning. */
export function configurationMarkdown(): string {
  const { properties = {} } = ConfigSchema as OptionSchema
  const entries = Object.entries(properties)
  const plain = entries.filter(([, option]) => !option.properties)
  const sections = entries.filter(([, option]) => option.properties)
  return `${[
    introduction,
    plain.map(([key, option]) => row(key, option)).join('\n'),
    ...sections.map(([key, section]) => {
      const options = Object.entries(section.properties ?? {}).map(([name, option]) => row(`${key}.${name}`, option))
      return `## ${key}\n\n${section.description}\n\n${options.join('\n')}`
    }),
  ].join('\n\n')}\n`
}

const introduction = `# Configuration

<!-- Generated from src/config/schema.ts; do not edit. -->

One YAML file, in a cluster the ConfigMap that is mounted for \`sandgate serve\`. Every option has a default, and an empty
file is valid. Unknown keys, bad values and unknown rule ids are errors. The file is read again when it changes; a bad new
file leaves the old configuration in force, and says so in the log, in a metric and in \`/readyz?verbose\`.

Editors that know the YAML language server check the file against its schema when it begins with
\`# yaml-language-server: $schema=configuration.schema.json\`.`

function row(path: string, option: OptionSchema): string {
  const { default: fallback, description = '' } = option
  const note = fallback === undefined ? '' : ` Default: ${defaultText(fallback)}.`
  return `- **\`${path}\`** (${typeText(option)}): ${description}${note}`
}

function defaultText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map((item) => `\`${String(item)}\``).join(', ')
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}

function typeText({ type, const: only, enum: choices, items, additionalProperties }: OptionSchema): string {
  if (only !== undefined) return `\`${only}\``
  if (choices) return choices.join(' | ')
  if (items) return `list of ${items.enum ? items.enum.join(' | ') : `${items.type}s`}`
  if (typeof additionalProperties === 'object') return `mapping to ${typeText(additionalProperties)}`
  return type ?? 'any'
}
