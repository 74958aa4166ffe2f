import { plainSchema, type Schema } from '#kernel/contract/decimal-fields.ts'
import type { Entry, StreamTaskEntry } from '#kernel/contract/operation.ts'
import { linkTarget } from '#kernel/contract/operation-link.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { describeFields } from './field-descriptions.ts'
import { withWait } from './input-validation.ts'

/** A tool's schema: plain JSON Schema with an object at its root, which every client accepts. */
export type ObjectSchema = { type: 'object'; properties: Record<string, object>; required?: string[] }

/** Merges path, query and body into one record. Throws if a part is not a plain object. */
export const inputSchemaOf = (name: string, entry: Entry): ObjectSchema =>
  described(name, mergedInput(name, entry, withWait(entry)))

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
 * Merges the forms of an answer into one object: it has the fields of all forms, and requires those that each requires.
 * Returns undefined if an answer may be something else than an object.
 */
export function answerSchemaOf(
  entry: Exclude<Entry, { kind: 'stream' }> | StreamTaskEntry,
): ObjectSchema | undefined {
  const output = plainSchema(entry.output)
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
