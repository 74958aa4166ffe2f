import { armOf, isRecord, propertySchema, type Schema } from '#kernel/decimal-fields.ts'

/**
 * Keeps what a schema names and drops the rest: unknown fields of a request are never acted upon, undeclared fields of
 * an answer never leak. Values pass unchecked. An object schema without properties is open.
 */
export function project(schema: Schema, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'object' || value === null) return value
  const arm = armOf(schema, value)
  if (!arm || !isNarrow(arm)) return Array.isArray(value) ? projectList(arm, value) : plain(value)
  return Array.isArray(value) ? projectList(arm, value) : projectRecord(arm, value as Record<string, unknown>)
}

/** What may stand beside the declared properties decides whether an object is narrowed at all. */
const isNarrow = (schema: Schema): boolean =>
  (schema.properties !== undefined || schema.patternProperties !== undefined) && schema.allOf === undefined

function projectRecord(schema: Schema, value: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  const open = schema.additionalProperties === true
  for (const [name, field] of Object.entries(value)) {
    const within = propertySchema(schema, name)
    if (within) kept[name] = project(within, field)
    else if (open || isDeclared(schema, name)) kept[name] = plain(field)
  }
  return kept
}

/** A property whose schema is `true` or `{}` is declared, though nothing is known of it. */
const isDeclared = (schema: Schema, name: string): boolean =>
  isRecord(schema.properties) && Object.hasOwn(schema.properties, name)

function projectList(schema: Schema | undefined, values: unknown[]): unknown[] {
  const items = schema && isRecord(schema.items) ? schema.items : undefined
  return values.map((value) => (items ? project(items, value) : plain(value)))
}

/** Dates and big integers become text also where no schema looks. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(plain)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]))
}
