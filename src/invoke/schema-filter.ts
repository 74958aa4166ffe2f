import { propertySchema, type Schema, selectSchema } from '#kernel/contract/decimal-fields.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * Keeps the fields of a schema and drops the rest: unknown fields of a request have no effect, and undeclared
 * fields of an answer never leak. Values are not validated. An object schema without properties is open.
 */
export function filterBySchema(schema: Schema, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'object' || value === null) return value
  const arm = selectSchema(schema, value)
  if (Array.isArray(value)) return filterList(arm, value)
  const outline = arm && outlineOf(arm)
  return outline?.isNarrow ? filterRecord(outline, value as Record<string, unknown>) : plain(value)
}

export type Outline = {
  parts: readonly Schema[]
  isNarrow: boolean
  isOpen: boolean
  /** The schemas of the declared fields by name; `true` if the schema says no more about a field than its name. */
  declared: ReadonlyMap<string, Schema | true>
}

const outlines = new WeakMap<Schema, Outline>()

/** Returns the outline of a schema, computed once: analysing a schema costs more than writing an answer. */
export function outlineOf(schema: Schema): Outline {
  const known = outlines.get(schema)
  if (known) return known
  const parts = partsOf(schema)
  const declared = new Map<string, Schema | true>()
  for (const part of parts) {
    for (const [name, field] of Object.entries(isRecord(part.properties) ? part.properties : {})) {
      if (isRecord(field)) declared.set(name, firstRecord(declared.get(name), field))
      else if (!declared.has(name)) declared.set(name, true)
    }
  }
  const made = {
    parts,
    isNarrow: parts.some((part) => part.properties !== undefined || part.patternProperties !== undefined),
    isOpen: parts.some((part) => part.additionalProperties === true),
    declared,
  }
  outlines.set(schema, made)
  return made
}

const firstRecord = (before: Schema | true | undefined, field: Schema): Schema =>
  isRecord(before) ? before : field

/** Returns the schema and the parts of its intersection, all of which may declare properties. */
const partsOf = (schema: Schema): Schema[] =>
  Array.isArray(schema.allOf) ? [schema, ...schema.allOf.filter(isRecord).flatMap(partsOf)] : [schema]

function filterRecord(outline: Outline, value: Record<string, unknown>): Record<string, unknown> {
  const filtered: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const field = value[name]
    const within = declaredField(outline, name)
    if (within === true) filtered[name] = plain(field)
    else if (within) filtered[name] = filterBySchema(within, field)
  }
  return filtered
}

/** Returns the schema of a field: true if any value is allowed, false or undefined if the name is not declared. */
export const declaredField = (outline: Outline, name: string): Schema | boolean | undefined =>
  outline.declared.get(name) ?? undeclared(outline, name)

/**
 * Finds the schema of an undeclared name by the schema's patterns for names, or by its rule for all other names. The
 * result is not cached, because clients choose the names.
 */
function undeclared({ parts, isOpen }: Outline, name: string): Schema | boolean {
  return parts.map((part) => propertySchema(part, name)).find((found) => found !== undefined) ?? isOpen
}

function filterList(schema: Schema | undefined, values: unknown[]): unknown[] {
  const items = schema && isRecord(schema.items) ? schema.items : undefined
  return values.map((value) => (items ? filterBySchema(items, value) : plain(value)))
}

/** Dates and big integers become text even if no schema applies. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(plain)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]))
}
