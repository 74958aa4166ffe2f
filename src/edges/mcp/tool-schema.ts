import { answerSchemaOf, inputSchemaOf as mergedInputOf, type ObjectSchema } from '#invoke/tool-schema.ts'
import { type Entry, hasTask, isGuarded, isKeyed, type MainTool } from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * The schemas of tools in a form that every client can read: each field has one type, although the operation may accept
 * several.
 */

type Schema = Readonly<Record<string, unknown>>

const keyField = {
  type: 'string',
  description: 'Names the intent: REUSE it to repeat the same intent, above all after a timeout',
}
const confirmField = {
  type: 'boolean',
  description: 'true only to do the same thing a second time on purpose',
}
const waitField = { type: 'boolean', default: false, description: 'Answer once the task has ended' }

const callFields = (entry: Entry): Record<string, object> => ({
  ...(isKeyed(entry) && { idempotency_key: keyField }),
  ...(isGuarded(entry) && { confirm_repeat: confirmField }),
})

/** Returns the schema of all fields that a tool takes. */
export function inputSchemaOf(name: string, entry: Entry): ObjectSchema {
  const { properties, ...rest } = singleTyped(mergedInputOf(name, entry)) as ObjectSchema
  return { ...rest, properties: { ...properties, ...callFields(entry) } }
}

/** Returns the schema of the fields that a main tool shows. Throws if it shows unknown fields, or hides required ones. */
export function mainInputOf(
  name: string,
  { properties, required = [] }: ObjectSchema,
  { entry, mainTool: { fields = {} } }: { entry: Entry; mainTool: MainTool },
): ObjectSchema {
  const names = Object.keys(fields)
  const unknown = names.filter((field) => !(field in properties))
  const hidden = required.filter((field) => !names.includes(field))
  if (unknown.length + hidden.length > 0)
    throw new Error(
      `${name}: the main tool has unknown fields (${unknown}) or lacks required ones (${hidden})`,
    )
  const shown = names.map((field) => {
    const { description: _, ...form } = withoutBounds(properties[field] as Schema)
    return [field, { ...form, ...(fields[field] !== '' && { description: fields[field] }) }] as const
  })
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(shown),
      ...('wait' in properties && { wait: waitField }),
      ...callFields(entry),
    },
    ...(required.length > 0 && { required }),
  }
}

/** The fields of a task that stand in the answer of every tool; `tasks_get` has them all. */
const taskFields = ['task_id', 'status']

/**
 * Returns names and types of the fields of an answer, or undefined if it is no object. A reader sees the values
 * themselves; a field without a type may be null, or of several types. `taskSchema` is the answer of `tasks_get`, whose
 * fields other tools do not repeat.
 */
export function outputSchemaOf(entry: Entry, taskSchema?: ObjectSchema): ObjectSchema | undefined {
  const answer = wholeAnswerOf(entry)
  if (!answer) return undefined
  const isNamed = (field: string) => taskFields.includes(field) || !(field in (taskSchema?.properties ?? {}))
  const isTask = 'task_id' in answer.properties
  const fields = Object.entries(answer.properties).filter(([field]) => !isTask || isNamed(field))
  return {
    type: 'object',
    properties: Object.fromEntries(
      fields.map(([field, schema]) => {
        const { type } = schema as Schema
        return [field, typeof type === 'string' ? { type } : {}]
      }),
    ),
  }
}

export const wholeAnswerOf = (entry: Entry): ObjectSchema | undefined =>
  entry.kind === 'stream' && !hasTask(entry) ? undefined : answerSchemaOf(entry)

const numberBounds = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']
const bounds = [
  ...numberBounds,
  'pattern',
  'format',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
]
const without = (schema: Schema, keywords: readonly string[]): Schema =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)))

/** Which of several accepted types is declared: that in which a model can say most. */
const preferred = ['array', 'string', 'object', 'integer', 'number', 'boolean']

const isNull = ({ type }: Schema): boolean => type === 'null'

function singleTyped(schema: Schema): Schema {
  const { anyOf, ...own } = schema
  if (Array.isArray(anyOf)) return ofUnion(own, anyOf.filter(isRecord).map(singleTyped))
  const copy: Record<string, unknown> = { ...own }
  if (isRecord(own.properties))
    copy.properties = Object.fromEntries(
      Object.entries(own.properties).map(([name, field]) => [
        name,
        isRecord(field) ? singleTyped(field) : field,
      ]),
    )
  if (isRecord(own.items)) copy.items = singleTyped(own.items)
  if (!Array.isArray(own.type)) return copy
  const type = preferred.find((each) => (own.type as unknown[]).includes(each))
  if (type !== 'string') return { ...copy, type }
  const { default: value, ...text } = without(copy, [...numberBounds, 'pattern'])
  return { ...text, type, ...(value !== undefined && { default: String(value) }) }
}

function ofUnion({ default: initial, ...own }: Schema, arms: readonly Schema[]): Schema {
  const values = arms.filter((arm) => !isNull(arm))
  const rank = ({ type }: Schema) => preferred.indexOf(String(type))
  const [chosen = {}] = [...values].sort((one, other) => rank(one) - rank(other))
  const description = String(own.description ?? chosen.description ?? '')
  const saysNull = values.length === arms.length || /null|omit|left out/.test(description)
  return {
    ...chosen,
    ...own,
    ...(initial !== undefined && initial !== null && { default: initial }),
    ...((description !== '' || !saysNull) && {
      description: saysNull ? description : [description, 'or null'].filter(Boolean).join('; '),
    }),
  }
}

function withoutBounds(schema: Schema): Schema {
  const { properties, items, examples: _, ...rest } = without(schema, bounds)
  return {
    ...rest,
    ...(isRecord(items) && { items: withoutBounds(items) }),
    ...(isRecord(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, field]) => [
          name,
          isRecord(field) ? withoutBounds(field) : field,
        ]),
      ),
    }),
  }
}
