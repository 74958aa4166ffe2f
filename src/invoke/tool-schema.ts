import { plainSchema, type Schema } from '#kernel/contract/decimal-fields.ts'
import { type Entry, hasTask, isGuarded, isKeyed } from '#kernel/contract/operation.ts'
import { linkTarget } from '#kernel/contract/operation-link.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { describeFields } from './field-descriptions.ts'
import { withWait } from './input-validation.ts'

/** A tool's schema: plain JSON Schema with an object at its root, which every client accepts. */
export type ObjectSchema = { type: 'object'; properties: Record<string, object>; required?: string[] }

const keyField = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[\\x21-\\x7e]+$',
  description:
    'Names the intent. REUSE the same key whenever you repeat the same intent, above all after a timeout or an ' +
    'unclear answer: the same key and arguments replay the first answer and never act twice.',
}
const confirmField = {
  type: 'boolean',
  description:
    'Send true only to do the same thing a second time on purpose, after `possible_duplicate` named the earlier task.',
}

/** Merges path, query and body into one record. Throws if a part is not a plain object. */
export function inputSchemaOf(name: string, entry: Entry): ObjectSchema {
  const { properties, ...rest } = mergedInput(name, entry, withWait(entry))
  const technical = {
    ...(isKeyed(entry) && { idempotency_key: keyField }),
    ...(isGuarded(entry) && { confirm_repeat: confirmField }),
  }
  return described(name, { ...rest, properties: { ...properties, ...technical } })
}

/** Returns an operation's input schema without the fields about the call itself: its key, and how long it waits. */
export const plainInputSchemaOf = (name: string, entry: Entry): ObjectSchema =>
  described(name, mergedInput(name, entry, entry.query && plainSchema(entry.query)))

function mergedInput(name: string, entry: Entry, query: Schema | undefined): ObjectSchema {
  const properties: Record<string, object> = {}
  const required: string[] = []
  for (const part of [
    entry.params && plainSchema(entry.params),
    query,
    entry.body && plainSchema(entry.body),
  ]) {
    if (!part) continue
    const fields = fieldsOf(part)
    if (!fields) throw new Error(`${name}: a part of the input is no object`)
    Object.assign(properties, fields.properties)
    const isNeeded = (field: unknown) => !('default' in (fields.properties[String(field)] ?? {}))
    if (Array.isArray(fields.required)) required.push(...fields.required.map(String).filter(isNeeded))
  }
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}

type Fields = { properties: Record<string, object>; required?: unknown }

function fieldsOf(part: Schema): Fields | undefined {
  const arms = Array.isArray(part.anyOf) ? part.anyOf.filter(isRecord) : []
  const object = isRecord(part.properties) ? part : arms.find(({ type }) => type === 'object')
  if (!object) return undefined
  const { properties, required } = shown(object)
  return {
    properties: (properties ?? {}) as Record<string, object>,
    required: part === object ? required : [],
  }
}

/**
 * Returns the schema of structured results, or undefined if the answer is no object and so is given as text only.
 * `known` is the schema of another tool that describes the same fields.
 */
export function outputSchemaOf(name: string, entry: Entry, known?: ObjectSchema): ObjectSchema | undefined {
  if (entry.kind === 'stream' && !hasTask(entry)) return undefined
  const output = answerOf(plainSchema(entry.output))
  if (!output) return undefined
  const { properties, required } = output
  const result = entry.kind === 'task' ? entry.result : undefined
  const fields = {
    ...properties,
    ...(result && { result: { anyOf: [shown(plainSchema(result)), { type: 'null' }] } }),
  }
  const whole = described(name, { type: 'object', ...(required && { required }), properties: fields })
  return { ...whole, properties: briefFields(whole.properties, known?.properties ?? {}) }
}

/** Merges the forms of an answer into one object: it has the fields of all forms, and requires those that each requires. */
function answerOf(output: Schema): ObjectSchema | undefined {
  const forms = output.type === 'object' ? [output] : Array.isArray(output.anyOf) ? output.anyOf : []
  const isObject = (form: unknown): form is Schema => isRecord(form) && form.type === 'object'
  if (!forms.every(isObject)) return undefined
  const [first, ...others] = forms.map((form) => shown(form) as ObjectSchema)
  return first && others.reduce(joined, first)
}

const joined = (one: ObjectSchema, other: ObjectSchema): ObjectSchema => ({
  type: 'object',
  properties: {
    ...one.properties,
    ...Object.fromEntries(
      Object.entries(other.properties).map(([name, field]) => {
        const known = one.properties[name]
        return [name, known ? { anyOf: [known, field] } : field]
      }),
    ),
  },
  required: (one.required ?? []).filter((name) => other.required?.includes(name)),
})

function briefFields(fields: Record<string, object>, known: Record<string, object>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const own = brief(field)
      const isKnown = JSON.stringify(own) === JSON.stringify(known[name])
      return [name, isKnown ? brief({ ...field, description: undefined }) : own]
    }),
  )
}

/**
 * Keeps what a reader of an answer needs: types, names and meanings. Bounds and patterns are for the writer of a value.
 * The fields of records within an answer are left out, since they would more than double a list of tools. Every answer
 * that fits the whole schema fits the brief one.
 */
function brief(schema: object): Record<string, unknown> {
  const { type, enum: values, const: value, description, items, anyOf } = schema as Schema
  const arms = Array.isArray(anyOf) ? anyOf.filter(isRecord).map(brief) : []
  const distinct = [...new Map(arms.map((arm) => [JSON.stringify(arm), arm])).values()]
  const [only, ...others] = distinct
  return {
    ...(type !== undefined && { type }),
    ...(values !== undefined && { enum: values }),
    ...(value !== undefined && { const: value }),
    ...(description !== undefined && { description }),
    ...(isRecord(items) && { items: brief(items) }),
    ...(only && (others.length > 0 ? { anyOf: distinct } : only)),
  }
}

function described(name: string, schema: ObjectSchema): ObjectSchema {
  describeFields({ [name]: schema })
  return schema
}

const maps = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas'])
const dataKeywords = new Set(['default', 'examples', 'example', 'enum', 'const', 'required'])

/** Removes schema names, private keywords, and links, which no answer of a tool has. */
function shown(schema: Schema): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === '$id' || keyword.startsWith('~') || keyword.startsWith('x-')) continue
    copy[keyword] = within(keyword, value)
  }
  return withoutLinks(schema, copy)
}

function within(keyword: string, value: unknown): unknown {
  if (dataKeywords.has(keyword)) return value
  if (maps.has(keyword) && isRecord(value))
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, field]) => !isLink(field))
        .map(([name, field]) => [name, isRecord(field) ? shown(field) : field]),
    )
  if (Array.isArray(value)) return value.map((item) => (isRecord(item) ? shown(item) : item))
  return isRecord(value) ? shown(value) : value
}

const isLink = (field: unknown): boolean => isRecord(field) && linkTarget(field) !== undefined

function withoutLinks({ properties, required }: Schema, copy: Record<string, unknown>) {
  if (!isRecord(properties) || !Array.isArray(required)) return copy
  return { ...copy, required: required.filter((name) => !isLink(properties[String(name)])) }
}
