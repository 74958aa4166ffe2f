import { isRecord, type Schema } from '#kernel/decimal-fields.ts'

type Json = Record<string, unknown>

/** Collects the schemas with an `$id`: each stands once in the document, and everything else refers to it. */
export type Components = {
  /** The schema as the document shows it: a reference where it has a name. */
  refer(schema: Schema): Json
  schemas(): Json
}

const schemaMaps = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas'])
/** Their content is data, in which `$id` means nothing. */
const dataKeywords = new Set(['default', 'examples', 'example', 'enum', 'const', 'required'])

export function components(): Components {
  const named = new Map<string, Json>()
  const origins = new Map<string, string>()

  const shown = (schema: Schema): Json => {
    const copy: Json = {}
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === '$id' || keyword.startsWith('~')) continue
      copy[keyword] = within(keyword, value)
    }
    return withoutDefaulted(copy)
  }
  const within = (keyword: string, value: unknown): unknown => {
    if (dataKeywords.has(keyword)) return value
    if (schemaMaps.has(keyword) && isRecord(value)) {
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, isRecord(item) ? refer(item) : item]),
      )
    }
    if (Array.isArray(value)) return value.map((item) => (isRecord(item) ? refer(item) : item))
    return isRecord(value) && !keyword.startsWith('x-') ? refer(value) : value
  }
  const refer = (schema: Schema): Json => {
    const { $id } = schema
    if (typeof $id !== 'string') return shown(schema)
    const text = JSON.stringify(schema)
    const origin = origins.get($id)
    if (origin !== undefined && origin !== text) throw new Error(`two different schemas are named ${$id}`)
    if (origin === undefined) {
      origins.set($id, text)
      named.set($id, {})
      named.set($id, shown(schema))
    }
    return { $ref: `#/components/schemas/${$id}` }
  }
  return {
    refer,
    schemas: () => Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** A field with a default may be left out, whatever the schema's own list says. */
function withoutDefaulted(copy: Json): Json {
  const { required, properties } = copy
  if (!Array.isArray(required) || !isRecord(properties)) return copy
  const needed = required.filter((name) => {
    const field = properties[String(name)]
    return !isRecord(field) || field.default === undefined
  })
  const { required: _, ...rest } = copy
  return needed.length > 0 ? { ...rest, required: needed } : rest
}

const location = { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } }

export const httpValidationError: Schema = {
  $id: 'HTTPValidationError',
  type: 'object',
  required: ['detail'],
  properties: {
    detail: {
      type: 'array',
      items: {
        $id: 'ValidationError',
        type: 'object',
        required: ['loc', 'msg', 'type'],
        properties: {
          loc: { ...location, description: 'Part of the request, then the path in it' },
          msg: { type: 'string' },
          type: { type: 'string' },
          ctx: { type: 'object', description: 'The figures of the rule', additionalProperties: true },
        },
      },
    },
  },
}

export const problemSchema: Schema = {
  $id: 'Problem',
  type: 'object',
  required: ['detail', 'code', 'retryable', 'request_id'],
  properties: {
    detail: { type: 'string' },
    code: { type: 'string', description: 'One of the codes of /error-catalog.json' },
    retryable: { type: 'boolean', description: 'The same request under the same key can succeed later' },
    outcome: { type: 'string', enum: ['not_executed', 'unknown'] },
    request_id: { type: 'string' },
  },
  additionalProperties: true,
}
