/** The smallest request of an operation, derived from its schema alone: no optional field, every flag off. */
import { type Entry, hasTask } from '#kernel/contract/operation.ts'

type Schema = { readonly [keyword: string]: unknown }
type Json = Record<string, unknown>

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const itemsOf = ({ items }: Schema): Schema => (isRecord(items) ? items : {})

function minimalValue(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (schema['x-decimal'] !== undefined) return '1'
  const arms = schema.anyOf ?? schema.oneOf
  if (Array.isArray(arms)) return minimalValue(arms.find(isRecord) ?? {})
  switch ([schema.type].flat()[0]) {
    case 'string':
      if (schema.format === 'uuid') return '00000000-0000-7000-8000-000000000000'
      return 'x'.repeat(Number(schema.minLength ?? 1))
    case 'integer':
    case 'number':
      return Number(schema.minimum ?? 0)
    case 'boolean':
      return false
    case 'array':
      return Array.from({ length: Number(schema.minItems ?? 0) }, () => minimalValue(itemsOf(schema)))
    case 'object':
      return minimalObject(schema)
    default:
      return null
  }
}

export function minimalObject(schema: Schema | undefined): Json {
  const properties = isRecord(schema?.properties) ? schema.properties : {}
  const required = Array.isArray(schema?.required) ? schema.required.map(String) : []
  return Object.fromEntries(required.map((name) => [name, minimalValue((properties[name] ?? {}) as Schema)]))
}

export type MinimalRequest = { params: Json; query: Json; body: Json | undefined }

/** A stream with an answer in its place is asked for that: not every door has streams. */
export const minimalRequest = (entry: Entry): MinimalRequest => {
  const { params, query, body } = entry
  return {
    params: minimalObject(params as unknown as Schema | undefined),
    query: minimalObject(query as unknown as Schema | undefined),
    body: body && { ...minimalObject(body as unknown as Schema), ...(hasTask(entry) && { stream: false }) },
  }
}

export function pathOf({ path }: Entry, { params, query }: Pick<MinimalRequest, 'params' | 'query'>): string {
  const filled = path.replace(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(String(params[name] ?? 'x')))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) search.append(name, String(value))
  return search.size > 0 ? `${filled}?${search}` : filled
}
