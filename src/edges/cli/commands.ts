import { contracts } from '#contracts.ts'
import { type Entry, isKeyed, operationName, takesWait } from '#kernel/contract/operation.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { viewOf, withoutNull } from './schema-view.ts'
import type { View } from './view.ts'

/**
 * What the command line has to know about an operation. The build of a release replaces this file by one with the
 * finished list.
 */
export type Command = {
  /** The name of the operation, such as `earn_deposit`. */
  name: string
  /** The section of the operation: a person types `portico <group> <verb>`. */
  group: string
  /** The purpose of the section, in one line of the help. */
  about: string
  verb: string
  summary: string
  description: string
  isStream: boolean
  isKeyed: boolean
  /** The most seconds for which a call waits for its task by default; absent if no call may wait. */
  waitSeconds?: number
  fields: readonly Field[]
  /** How its answer is printed. */
  view?: View
  /** The kind of its tasks, and how their result is printed. */
  taskKind?: string
  result?: View
}
export type Field = {
  name: string
  flag: string
  description: string
  type: 'text' | 'integer' | 'number' | 'boolean' | 'json'
  choices: readonly string[]
  /** The value that the gateway uses if the field is missing. */
  default?: string
  isList: boolean
  isRequired: boolean
  isPath: boolean
}

type Schema = Readonly<Record<string, unknown>>

export const kebabCase = (text: string): string =>
  text.replace(/_/g, '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const propertiesOf = (schema: unknown): Readonly<Record<string, Schema>> =>
  (schema as { properties?: Record<string, Schema> } | undefined)?.properties ?? {}

function typeOf({ type, ...schema }: Schema): Field['type'] {
  const types = [type].flat()
  if (schema['x-decimal'] !== undefined || types.includes('string')) return 'text'
  return (['integer', 'number', 'boolean'] as const).find((each) => types.includes(each)) ?? 'json'
}

/** Other spellings of the same words are left out. */
function choicesOf({ enum: values }: Schema): string[] {
  const words = Array.isArray(values) ? values.map(String) : []
  return words.filter((word) => word === word.toLowerCase() || !words.includes(word.toLowerCase()))
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
    choices: choicesOf(value),
    ...(declared.default !== undefined && { default: String(declared.default) }),
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

/** Answers of tasks have the form that `tasks_get` has; some have more beside it, such as a quote. */
function viewsOf(name: string, entry: Entry): Pick<Command, 'view' | 'result' | 'taskKind'> {
  const view = entry.kind === 'task' && entry.output === TaskResponse ? undefined : viewOf(entry.output)
  if (entry.kind !== 'task') return { ...(view && { view }) }
  const result = viewOf(entry.result)
  return { taskKind: entry.taskKind ?? name, ...(view && { view }), ...(result && { result }) }
}

export const commands: readonly Command[] = contracts.flatMap(({ group, about, entries }) =>
  Object.entries(entries).map(([key, entry]: [string, Entry]) => ({
    name: operationName(group, key),
    group: kebabCase(group),
    about,
    verb: kebabCase(key),
    summary: entry.summary,
    description: entry.description ?? '',
    isStream: entry.kind === 'stream',
    isKeyed: isKeyed(entry),
    ...(takesWait(entry) && { waitSeconds: entry.waitSeconds }),
    fields: fieldsOf(entry),
    ...viewsOf(operationName(group, key), entry),
  })),
)
