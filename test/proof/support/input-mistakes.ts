/** Wrong inputs of an operation, made from its schemas: each good but for one field. */

import { withWait } from '#invoke/input-validation.ts'
import type { Schema } from '#kernel/contract/decimal-fields.ts'
import type { Entry } from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { minimalRequest } from './minimal-request.ts'

type Fields = Record<string, unknown>
export type Mistake = { what: string; input: Fields }

export const minimalInput = (entry: Entry): Fields => {
  const { params, query, body } = minimalRequest(entry)
  return { ...params, ...query, ...body }
}

export function mistakesOf(entry: Entry): Mistake[] {
  const good = minimalInput(entry)
  const fields = [
    ...fieldsOf(entry.params as unknown as Schema, 'text'),
    ...fieldsOf(withWait(entry), 'text'),
    ...fieldsOf(entry.body as unknown as Schema, 'json'),
  ]
  return [
    { what: 'an unknown field', input: { ...good, no_such_field: 'x' } },
    ...fields.flatMap(({ name, schema, encoding, isRequired }) => {
      const { [name]: _, ...without } = good
      return [
        ...(isRequired && encoding === 'json' ? [{ what: `${name} is missing`, input: without }] : []),
        ...wrongValues(schema, encoding).map(([what, value]) => ({
          what: `${name} is ${what}`,
          input: { ...good, [name]: value },
        })),
      ]
    }),
  ]
}

type Encoding = 'text' | 'json'
type Field = { name: string; schema: Schema; encoding: Encoding; isRequired: boolean }

function fieldsOf(schema: Schema | undefined, encoding: Encoding): Field[] {
  if (!schema) return []
  const arms = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []))
  const required = Array.isArray(schema.required) ? schema.required : []
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const own = Object.entries(properties).flatMap(([name, field]) =>
    isRecord(field)
      ? [
          {
            name,
            schema: field,
            encoding,
            isRequired: required.includes(name) && field.default === undefined,
          },
        ]
      : [],
  )
  return [...own, ...arms.filter(isRecord).flatMap((arm) => fieldsOf(arm, encoding))]
}

function wrongValues(schema: Schema, encoding: Encoding): [string, unknown][] {
  const arms = [schema, ...[schema.anyOf, schema.oneOf].flatMap((list) => (Array.isArray(list) ? list : []))]
  const types = arms.flatMap(({ type }) => type ?? [])
  const values = arms.flatMap((arm) => outOfRange(arm))
  // A path or a query carries text alone, so that text is no wrong type there.
  if (encoding === 'json') values.push(['of a wrong type', types.includes('boolean') ? 7 : true])
  else if (!types.includes('string')) values.push(['of a wrong type', 'x'])
  return values
}

function outOfRange(schema: Schema): [string, unknown][] {
  const isDecimal = schema['x-decimal'] !== undefined
  const bound = (keyword: string, step: number): [string, unknown][] => {
    const limit = schema[keyword]
    if (typeof limit !== 'number') return []
    return [[`beyond its ${keyword}`, isDecimal ? String(limit + step) : limit + step]]
  }
  const text = (keyword: string, change: number): [string, unknown][] => {
    const limit = schema[keyword]
    return typeof limit === 'number' && limit + change >= 0
      ? [[`beyond its ${keyword}`, 'x'.repeat(limit + change)]]
      : []
  }
  const isText = [schema.type].flat().includes('string')
  const { enum: choices, pattern, maxItems, 'x-decimal': rule } = schema
  const places = isRecord(rule) && typeof rule.places === 'number' ? rule.places : 18
  return [
    ...bound('minimum', -1),
    ...bound('maximum', 1),
    ...bound('exclusiveMinimum', 0),
    ...bound('exclusiveMaximum', 0),
    ...text('maxLength', 1),
    ...(Array.isArray(choices) ? ([['no choice of it', 'nonsense']] as [string, unknown][]) : []),
    ...(isText && (pattern !== undefined || schema.format !== undefined)
      ? ([['of a wrong form', '!']] as [string, unknown][])
      : []),
    ...(typeof maxItems === 'number'
      ? ([['a list that is too long', Array.from({ length: maxItems + 1 }, () => 'x')]] as [
          string,
          unknown,
        ][])
      : []),
    ...(isDecimal ? ([['too precise', `1.${'1'.repeat(places + 1)}`]] as [string, unknown][]) : []),
  ]
}
