import type { Schema } from '#kernel/contract/decimal-fields.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * Query and path contain only text. Each declared parameter is parsed by its schema; a text that cannot be parsed stays
 * text, so that validation names it. Ajv's own coercion is not used, because it reads "0x10" as 16 and "" as null.
 */

const booleans: Record<string, boolean> = {
  ...Object.fromEntries(['true', '1', 'yes', 'on', 't', 'y'].map((word) => [word, true])),
  ...Object.fromEntries(['false', '0', 'no', 'off', 'f', 'n'].map((word) => [word, false])),
}
const integer = /^[+-]?\d{1,16}$/
const decimal = /^[+-]?\d{1,39}(?:\.\d{1,18})?$/

const armsOf = (schema: Schema): Schema[] => {
  const arms = schema.anyOf ?? schema.oneOf
  return Array.isArray(arms) ? arms.filter(isRecord).flatMap(armsOf) : [schema]
}

const typesOf = (schema: Schema): unknown[] => armsOf(schema).flatMap((arm) => arm.type ?? [])

function readText(text: string, types: readonly unknown[]): unknown {
  // A text schema takes the text unchanged, so that a decimal keeps its digits and an id its zeros.
  if (types.includes('string')) return text
  const flag = types.includes('boolean') ? booleans[text.toLowerCase()] : undefined
  if (flag !== undefined) return flag
  if (types.includes('integer') && integer.test(text)) return Number(text)
  if (types.includes('number') && decimal.test(text)) return Number(text)
  return text
}

function readParameter(schema: Schema, given: unknown): unknown {
  const list = armsOf(schema).find((arm) => arm.type === 'array')
  if (list) {
    const types = isRecord(list.items) ? typesOf(list.items) : []
    return [given].flat().map((item) => (typeof item === 'string' ? readText(item, types) : item))
  }
  return typeof given === 'string' ? readText(given, typesOf(schema)) : given
}

/** Parses the declared parameters of the request by their schema. No name can reach a prototype. */
export function readParameters(schema: Schema, given: Record<string, unknown>): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const values: Record<string, unknown> = Object.create(null)
  for (const name of Object.keys(given)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    values[name] = isRecord(field) ? readParameter(field, given[name]) : given[name]
  }
  return values
}
