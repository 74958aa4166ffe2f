/** What a person reads before accepting a call: every argument of every call that a chat may propose is in it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { contracts } from '#contracts.ts'
import { recommendationText } from '#features/chat/recommendation/recommendation-text.ts'
import { toolsOf } from '#features/chat/tool-registry.ts'
import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import { type Operation, operationName } from '#kernel/contract/operation.ts'
import { findChain, tokenByRef } from '#kernel/contract/token-ref.ts'
import { fromUnits, toUnits } from '#kernel/money/money.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'
import { listsOfTexts as lists } from './lists-of-texts.ts'

const { chains } = lists

const operations = contracts.flatMap(({ group, entries }) =>
  Object.entries(entries).map(([key, entry]) => ({ name: operationName(group, key), group, entry })),
) as unknown as Operation[]
const proposable = [...toolsOf(operations).values()].filter(({ effectOf }) => effectOf({}) === 'change')

type Schema = Record<string, unknown> & {
  type?: string | string[]
  properties?: Record<string, Schema>
  anyOf?: Schema[]
  items?: Schema
}

const isChain = (field: string): boolean => /chain/.test(field)
/** `token_id` is another name of an outcome. */
const isToken = (field: string): boolean => /token/.test(field) && field !== 'token_id' && !isChain(field)
const tokenRefs = chains.flatMap(({ native, tokens }) =>
  [native, ...tokens].flatMap(({ address, symbol }) => [
    address,
    address.toLowerCase(),
    symbol,
    symbol.toLowerCase(),
  ]),
)
const evmAddress = fc
  .bigInt({ min: 1n, max: 2n ** 160n - 1n })
  .map((value) => `0x${value.toString(16).padStart(40, '0')}`)
const decimalOf = (places: number) =>
  fc.bigInt({ min: 1n, max: 10n ** 24n }).map((units) => fromUnits(units, places))
const words = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' })
const hostile = fc.constantFrom('\u202e0.1', 'a\nSlippage: none', '"', '\\u0041', 'é', '100 % safe', '\ud800')

function valuesOf(field: string, schema: Schema): fc.Arbitrary<Json> {
  const { type, anyOf, items, properties } = schema
  if (anyOf) return fc.oneof(...anyOf.map((each) => valuesOf(field, each)))
  if (schema.enum) return fc.constantFrom(...(schema.enum as string[]))
  if (isChain(field))
    return fc.constantFrom<Json>('8453', 'base', 'Arbitrum One', 42161, 'solana', '56', 'nowhere')
  if (isToken(field) && type === 'string') return fc.oneof(fc.constantFrom(...tokenRefs), evmAddress, words)
  if (field === 'recipient') return evmAddress
  if (schema.format === 'uuid') return fc.uuid()
  if (schema.format === 'date-time') return fc.constant('2030-01-02T03:04:05.678Z')
  switch (String(type)) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: Number(schema.minimum ?? 0), max: Number(schema.maximum ?? 10_000) })
    case 'number,string':
      return fc.oneof(decimalOf(6), decimalOf(2).map(String), fc.integer({ min: 1, max: 1_000_000 }))
    case 'string,integer':
      return field.startsWith('amount')
        ? fc.bigInt({ min: 0n, max: 10n ** 30n }).map(String)
        : fc.oneof(words, fc.integer({ min: 1, max: 1_000_000 }))
    case 'integer,string':
      return fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 50 }).map(String))
    case 'string':
      return fc.oneof(words, hostile, fc.constantFrom('BTC', 'hl:perp:BTC', 'p-1'))
    case 'array':
      return fc.array(valuesOf(field, items!), { minLength: 1, maxLength: 3 })
    case 'object':
      return objectOf(properties ?? {}, [])
    default:
      throw new Error(`no values of ${field}: ${JSON.stringify(schema)}`)
  }
}
const objectOf = (
  properties: Record<string, Schema>,
  required: readonly string[],
): fc.Arbitrary<JsonObject> =>
  fc.record(
    Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, valuesOf(field, schema)])),
    { requiredKeys: required.filter((field) => field in properties) },
  ) as fc.Arbitrary<JsonObject>

function inputOf({ entry }: Operation): fc.Arbitrary<JsonObject> {
  const parts = [entry.params, entry.query, entry.body].flatMap((part) =>
    part ? [plainSchema(part) as Schema] : [],
  )
  const properties = Object.assign({}, ...parts.map((part) => part.properties ?? {})) as Record<
    string,
    Schema
  >
  return objectOf(
    properties,
    parts.flatMap((part) => (part.required as string[] | undefined) ?? []),
  )
}

const withoutZeros = (decimal: string): string => fromUnits(toUnits(decimal, 24), 24)
const isDecimal = (value: Json): value is string | number =>
  typeof value === 'number' || (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value))

/** The number stands alone: it is no part of a longer one. */
const hasNumber = (detail: string, number: string): boolean =>
  new RegExp(`(?<![\\d.])${number.replace('.', '\\.')}(?![\\d]|\\.\\d)`).test(detail.replaceAll(',', ''))

function hasText(detail: string, text: string): boolean {
  const quoted = detail.match(/"(?:[^"\\]|\\.)*"/g) ?? []
  return (
    (/^[\x21-\x7e]+$/.test(text) && detail.toLowerCase().includes(text.toLowerCase())) ||
    quoted.some((each) => JSON.parse(each) === text)
  )
}

function hasToken(detail: string, ref: string): boolean {
  const listed = chains.flatMap((chain) => {
    try {
      const found = tokenByRef(chain, ref, 'token')
      return 'token' in found ? [found] : []
    } catch {
      return []
    }
  })
  const isNamed = ({ token, isNative }: (typeof listed)[number]) =>
    detail.includes(`${token.symbol} (${isNative ? 'the native coin' : token.address})`)
  return listed.some(isNamed) || hasText(detail, ref.trim())
}

/** By what the operation itself would count it in. */
function hasAmount(detail: string, units: string, input: JsonObject): boolean {
  const ref = input.token_in ?? input.token ?? input.source_token ?? input.source_token_address ?? 'USDC'
  const home = input.source_token_address === undefined ? '42161' : '137'
  const chain = findChain(
    chains,
    (input.chain_id_in ?? input.chain_id ?? input.source_chain_id ?? home) as string,
  )
  let decimals = 0
  try {
    const found = chain && tokenByRef(chain, String(ref), 'token')
    if (found && 'token' in found) decimals = found.token.decimals
  } catch {}
  return hasNumber(detail, fromUnits(BigInt(units), decimals))
}

/** The arguments that are not recognised in the detail, by their fields. */
function missing(detail: string, input: JsonObject, field: string, value: Json): string[] {
  const lost = (isThere: boolean) => (isThere ? [] : [`${field}: ${JSON.stringify(value)}`])
  if (Array.isArray(value)) return value.flatMap((each) => missing(detail, input, field, each))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, each]) => missing(detail, input, name, each))
  // Those with few values are compared with each other below.
  if (typeof value === 'boolean') return []
  if (value === null) return lost(detail.includes(`${field} not set`))
  if (isChain(field)) {
    const chain = findChain(chains, value)
    return lost(detail.includes(chain ? chain.displayName : `chain ${value} (not on the list`))
  }
  if (isToken(field)) return lost(hasToken(detail, String(value)))
  if (field === 'amount') return lost(hasAmount(detail, String(value), input))
  if (field === 'condition') return lost(detail.includes(value === 'lte' ? 'or less' : 'or more'))
  if (field.endsWith('_bps')) return lost(hasNumber(detail, fromUnits(BigInt(value), 2)))
  if (/^(price|sell|trailing)_percentage$/.test(field))
    return lost(hasNumber(detail, fromUnits(toUnits(String(value), 18), 16)))
  if (isDecimal(value)) return lost(hasNumber(detail, withoutZeros(String(value))))
  return lost(hasText(detail, String(value)))
}

const detailOf = (operation: Operation, input: JsonObject) =>
  recommendationText(operation, input, lists).detail
const runs = { numRuns: 150 }

describe('the text of a recommendation', () => {
  test('there are operations to propose', () => {
    assert.ok(proposable.length > 20)
  })
  for (const { operation } of proposable)
    test(`${operation.name}: every argument is in the detail`, () => {
      fc.assert(
        fc.property(inputOf(operation), (input) => {
          const { title, detail } = recommendationText(operation, input, lists)
          assert.deepEqual(
            Object.entries(input).flatMap(([field, value]) => missing(detail, input, field, value)),
            [],
            detail,
          )
          for (const line of [title, ...detail.split('\n')]) assert.match(line, /^[\x20-\x7e₮]+$/u)
        }),
        runs,
      )
    })

  for (const { operation } of proposable)
    test(`${operation.name}: another choice of words or switches is another detail`, () => {
      fc.assert(
        fc.property(inputOf(operation), (input) => {
          const { properties = {} } = (
            operation.entry.body ? plainSchema(operation.entry.body) : {}
          ) as Schema
          const detail = detailOf(operation, input)
          for (const [field, schema] of Object.entries(properties)) {
            const choices: Json[] =
              schema.type === 'boolean' ? [true, false] : ((schema.enum as Json[] | undefined) ?? [])
            const others = choices.filter((choice) => choice !== input[field])
            for (const other of others)
              assert.notEqual(detailOf(operation, { ...input, [field]: other }), detail, field)
          }
        }),
        { numRuns: 30 },
      )
    })

  test('a field that no words know is printed by its name', () => {
    for (const { operation } of proposable)
      assert.match(detailOf(operation, { not_yet_known: 'x 1' }), /^not_yet_known "x 1"$/m, operation.name)
  })
})
