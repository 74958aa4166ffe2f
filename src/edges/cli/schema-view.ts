import { columnsOf } from '#kernel/contract/columns.ts'
import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import { SignedUnits, Units } from '#kernel/contract/wire-types.ts'
import { decimalPattern } from '#kernel/money/money.ts'
import type { Kind, View } from './view.ts'

/** Reads from the schema of an answer how a person sees it. A release contains what was read. */

type Schema = Readonly<Record<string, unknown>>

/** Returns the only arm of a union beside null, or the first of several that is an object; any other schema unchanged. */
export function withoutNull(schema: Schema): Schema {
  const arms = Array.isArray(schema.anyOf) ? (schema.anyOf as Schema[]) : []
  const others = arms.filter(({ type }) => type !== 'null')
  return (others.length === 1 ? others[0] : others.find(({ type }) => type === 'object')) ?? schema
}

function kindOf(name: string, schema: Schema): Kind | undefined {
  const { pattern, format, type, description } = schema
  if (format === 'date-time') return 'time'
  if (/^(?:\w+_)?chain(?:s|_ids?)?(?:_in|_out)?$/.test(name) && type === 'string') return 'chain'
  if (name.endsWith('_bps')) return 'bps'
  if (pattern === plainSchema(Units).pattern) return 'units'
  if (pattern === plainSchema(SignedUnits).pattern) return 'change'
  if (/\bfraction\b/.test(String(description ?? ''))) return 'fraction'
  if (pattern === decimalPattern || type === 'number')
    return /(?:^|_)usd(?:_|$)/.test(name) ? 'usd' : 'decimal'
  return /(?:^|_)(?:id|oid|cloid|hash|address|oids|ids)$/.test(name) && type === 'string' ? 'id' : undefined
}

export function viewOf(schema: unknown): View | undefined {
  const whole = withoutNull((schema ?? {}) as Schema)
  const item = whole.type === 'array' ? withoutNull(whole.items as Schema) : whole
  const properties = (item.properties ?? {}) as Readonly<Record<string, Schema>>
  const kinds: Record<string, Kind> = {}
  const parts: Record<string, View> = {}
  for (const [name, declared] of Object.entries(properties)) {
    const field = withoutNull(declared)
    const value = field.type === 'array' ? withoutNull(field.items as Schema) : field
    const part = viewOf(value)
    const kind = kindOf(
      name,
      value.description === undefined ? { ...value, description: declared.description } : value,
    )
    if (part) parts[name] = part
    else if (kind) kinds[name] = kind
  }
  const columns = columnsOf(item)
  const view: View = {
    ...(columns && { columns }),
    ...(Object.keys(kinds).length > 0 && { kinds }),
    ...(Object.keys(parts).length > 0 && { parts }),
  }
  return Object.keys(view).length > 0 ? view : undefined
}
