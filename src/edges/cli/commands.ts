import { contracts } from '#contracts.ts'
import { type Entry, isKeyed, operationName, takesWait } from '#kernel/contract/operation.ts'

/**
 * What the command line has to know about an operation. The build of a release replaces this file by one with the
 * finished list.
 */
export type Command = {
  /** The name of the operation, such as `earn_deposit`. */
  name: string
  /** The section of the operation: a person types `portico <group> <verb>`. */
  group: string
  verb: string
  summary: string
  description: string
  isStream: boolean
  isKeyed: boolean
  /** The most seconds for which a call waits for its task by default; absent if no call may wait. */
  waitSeconds?: number
  fields: readonly Field[]
}
export type Field = {
  name: string
  flag: string
  description: string
  type: 'text' | 'integer' | 'number' | 'boolean' | 'json'
  choices: readonly string[]
  isList: boolean
  isRequired: boolean
  isPath: boolean
}

type Schema = Readonly<Record<string, unknown>>

export const kebabCase = (text: string): string =>
  text.replace(/_/g, '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const propertiesOf = (schema: unknown): Readonly<Record<string, Schema>> =>
  (schema as { properties?: Record<string, Schema> } | undefined)?.properties ?? {}

/** Returns the only arm of a union beside null, and any other schema unchanged. */
function withoutNull(schema: Schema): Schema {
  const arms = Array.isArray(schema.anyOf) ? (schema.anyOf as Schema[]) : []
  const others = arms.filter(({ type }) => type !== 'null')
  return others.length === 1 && others[0] ? others[0] : schema
}

function typeOf({ type, ...schema }: Schema): Field['type'] {
  const types = [type].flat()
  if (schema['x-decimal'] !== undefined || types.includes('string')) return 'text'
  return (['integer', 'number', 'boolean'] as const).find((each) => types.includes(each)) ?? 'json'
}

function fieldOf(name: string, declared: Schema, needs: { isRequired: boolean; isPath: boolean }): Field {
  const schema = withoutNull(declared)
  const items = schema.type === 'array' ? (schema.items as Schema) : undefined
  const isList = items !== undefined && typeOf(items) !== 'json'
  const value = isList ? items : schema
  return {
    name,
    flag: kebabCase(name),
    description: String(declared.description ?? schema.description ?? ''),
    type: typeOf(value),
    choices: Array.isArray(value.enum) ? value.enum.map(String) : [],
    isList,
    ...needs,
  }
}

function fieldsOf(entry: Entry): Field[] {
  return (['params', 'query', 'body'] as const).flatMap((part) => {
    const required = (entry[part] as { required?: readonly string[] } | undefined)?.required ?? []
    return Object.entries(propertiesOf(entry[part])).map(([name, schema]) =>
      fieldOf(name, schema, { isRequired: required.includes(name), isPath: part === 'params' }),
    )
  })
}

export const commands: readonly Command[] = contracts.flatMap(({ group, entries }) =>
  Object.entries(entries).map(([key, entry]: [string, Entry]) => ({
    name: operationName(group, key),
    group: kebabCase(group),
    verb: kebabCase(key),
    summary: entry.summary,
    description: entry.description ?? '',
    isStream: entry.kind === 'stream',
    isKeyed: isKeyed(entry),
    ...(takesWait(entry) && { waitSeconds: entry.waitSeconds }),
    fields: fieldsOf(entry),
  })),
)
