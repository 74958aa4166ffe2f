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

/** The schema and the parts of its intersection, all of which may declare properties. */
const partsOf = (schema: Schema): Schema[] =>
  Array.isArray(schema.allOf) ? [schema, ...schema.allOf.filter(isRecord).flatMap(partsOf)] : [schema]

const isNarrow = (schema: Schema): boolean =>
  partsOf(schema).some((part) => part.properties !== undefined || part.patternProperties !== undefined)

function projectRecord(schema: Schema, value: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  const parts = partsOf(schema)
  const open = parts.some((part) => part.additionalProperties === true)
  for (const [name, field] of Object.entries(value)) {
    const within = parts.map((part) => propertySchema(part, name)).find((found) => found !== undefined)
    if (within) kept[name] = project(within, field)
    else if (open || parts.some((part) => isDeclared(part, name))) kept[name] = plain(field)
  }
  return kept
}

/** A property whose schema is `true` is declared, though nothing is known of it. */
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
