import { canonicalDecimal, decimalOfSource, decimalPlaces, toUnits } from '#kernel/money/money.ts'
import { isRecord, type NumberSources } from '#kernel/wire/json.ts'
import { type Issue, issuesMax } from './fault.ts'
import type { TSchema } from './schema.ts'

export type Schema = { readonly [keyword: string]: unknown }
export const plainSchema = (schema: TSchema): Schema => schema as unknown as Schema
export type Resolve = (ref: string) => Schema | undefined

type Holder = Record<string, unknown>
type Path = (string | number)[]
type Context = { sources: NumberSources | undefined; resolve: Resolve; issues: Issue[] }

const wholeDigitsMax = 39
const placesMax = 18
const textLengthMax = 200
const textPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/
const numberPattern = /^(-?(?:0|[1-9]\d*)(?:\.\d+)?)(?:[eE]([+-]?\d+))?$/

const asSchema = (value: unknown): Schema | undefined => (isRecord(value) ? value : undefined)
const resolveNothing: Resolve = () => undefined

/**
 * Replaces each `x-decimal` field, number or text, by its canonical decimal text, in place. A number is read
 * from its source text, so that no value passes through a float. A value out of bounds stays unchanged and
 * becomes an issue; reading stops at the maximum number of issues.
 */
export function readDecimals(
  schema: Schema,
  value: unknown,
  sources?: NumberSources,
  resolve: Resolve = resolveNothing,
): { value: unknown; issues: Issue[] } {
  const root: Holder = { value }
  const issues: Issue[] = []
  if (holdsDecimals(schema, resolve))
    walk(schema, { holder: root, key: 'value', path: [] }, { sources, resolve, issues })
  return { value: root.value, issues }
}

/** A value, given as the object that holds it, its key, and its path from the root. */
type Place = { holder: Holder; key: string; path: Path }

function walk(schema: Schema, place: Place, context: Context): void {
  const { holder, key, path } = place
  const value = holder[key]
  if (value === undefined || value === null || context.issues.length >= issuesMax) return
  if (schema['x-decimal'] !== undefined) {
    readField(schema, place, context)
    return
  }
  const arm = selectSchema(schema, value, context.resolve)
  if (arm !== schema) {
    if (arm && holdsDecimals(arm, context.resolve)) walk(arm, place, context)
    return
  }
  for (const part of list(schema.allOf)) walk(part, place, context)
  if (Array.isArray(value)) {
    const rows = value as Holder & unknown[]
    value.forEach((_, index) => {
      const item = list(schema.prefixItems)[index] ?? asSchema(schema.items)
      if (item) walk(item, { holder: rows, key: String(index), path: [...path, index] }, context)
    })
  } else if (isRecord(value)) {
    for (const name of Object.keys(value)) {
      const field = propertySchema(schema, name)
      if (field) walk(field, { holder: value, key: name, path: [...path, name] }, context)
    }
  }
}

function readField(schema: Schema, { holder, key, path }: Place, context: Context): void {
  const value = holder[key]
  if (typeof value !== 'number' && typeof value !== 'string') return
  const text =
    typeof value === 'string' ? value : (context.sources?.get(holder)?.get(key) ?? numberText(value))
  const found = decimalOf(text, schema, { isText: typeof value === 'string' })
  if (typeof found === 'string') holder[key] = found
  else context.issues.push({ path, ...found })
}

/** The text of a number whose source text is unknown, because the number was never JSON text in this process. */
const numberText = (value: number): string => String(value)

type DecimalIssue = Omit<Issue, 'path'>

const tooManyPlaces = (max: number): DecimalIssue => ({
  type: 'decimal_max_places',
  msg: `Decimal input should have no more than ${max} decimal places; round it first`,
  ctx: { max },
})
const tooManyDigits: DecimalIssue = {
  type: 'decimal_whole_digits',
  msg: `Decimal input should have no more than ${wholeDigitsMax} digits before the decimal point`,
  ctx: { max: wholeDigitsMax },
}

export function decimalOf(
  text: string,
  schema: Schema,
  { isText }: { isText: boolean },
): string | DecimalIssue {
  const places = placesOf(schema)
  const match = (isText ? textPattern : numberPattern).exec(text)
  if (!match) {
    return isText
      ? {
          type: 'string_pattern_mismatch',
          msg: 'Input should be a decimal number such as 12.5: no unit, sign +, separator, exponent or space',
        }
      : { type: 'finite_number', msg: 'Input should be a finite number' }
  }
  // Trimming zeros is quadratic in the worst case, so the length is limited first.
  const plain =
    text.length > textLengthMax ? undefined : isText ? canonicalDecimal(text) : decimalOfSource(text)
  if (plain === undefined) {
    const read = overflow(match[1] ?? text, Number(match[2] ?? 0), places)
    return read === '0' ? (outOfBounds('0', schema) ?? '0') : read
  }
  if (decimalPlaces(plain) > places) return tooManyPlaces(places)
  return outOfBounds(plain, schema) ?? plain
}

function overflow(mantissa: string, exponent: number, places: number): string | DecimalIssue {
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return '0'
  const wholeDigits = digits.length - fraction.length + exponent
  return wholeDigits > wholeDigitsMax ? tooManyDigits : tooManyPlaces(places)
}

function placesOf(schema: Schema): number {
  const rule = schema['x-decimal']
  return isRecord(rule) && typeof rule.places === 'number' ? rule.places : placesMax
}

const bounds = [
  { keyword: 'exclusiveMinimum', type: 'greater_than', words: 'greater than', holds: (c: number) => c > 0 },
  {
    keyword: 'minimum',
    type: 'greater_than_equal',
    words: 'greater than or equal to',
    holds: (c: number) => c >= 0,
  },
  { keyword: 'exclusiveMaximum', type: 'less_than', words: 'less than', holds: (c: number) => c < 0 },
  {
    keyword: 'maximum',
    type: 'less_than_equal',
    words: 'less than or equal to',
    holds: (c: number) => c <= 0,
  },
] as const

function outOfBounds(plain: string, schema: Schema): DecimalIssue | undefined {
  for (const { keyword, type, words, holds } of bounds) {
    const bound = schema[keyword]
    if (typeof bound !== 'number' && typeof bound !== 'string') continue
    const limit = decimalOfSource(String(bound))
    if (limit !== undefined && !holds(compareDecimals(plain, limit))) {
      return { type, msg: `Input should be ${words} ${limit}${meaningOf(schema)}` }
    }
  }
  return undefined
}

/**
 * Returns the field's description, which names the unit, for an error about a bound: 50 may be far too many
 * percent.
 */
const meaningOf = ({ description }: Schema): string =>
  typeof description === 'string' ? ` (${description})` : ''

export function compareDecimals(a: string, b: string): number {
  const places = Math.max(decimalPlaces(a), decimalPlaces(b))
  const left = toUnits(a, places)
  const right = toUnits(b, places)
  return left < right ? -1 : left > right ? 1 : 0
}

const list = (value: unknown): Schema[] => (Array.isArray(value) ? value.filter(isRecord) : [])

export function propertySchema(schema: Schema, name: string): Schema | undefined {
  const properties = asSchema(schema.properties)
  if (properties && Object.hasOwn(properties, name)) return asSchema(properties[name])
  for (const [pattern, field] of Object.entries(asSchema(schema.patternProperties) ?? {})) {
    if (new RegExp(pattern, 'u').test(name)) return asSchema(field)
  }
  return asSchema(schema.additionalProperties)
}

/**
 * Returns the schema that applies to a value: `schema` itself, the target of its reference, or the best arm of its
 * union.
 */
export function selectSchema(
  schema: Schema,
  value: unknown,
  resolve: Resolve = resolveNothing,
): Schema | undefined {
  if (typeof schema.$ref === 'string') {
    const target = resolve(schema.$ref)
    return target && selectSchema(target, value, resolve)
  }
  const arms = list(schema.anyOf ?? schema.oneOf)
  if (arms.length === 0) return schema
  let best: Schema | undefined
  let bestScore = -1
  for (const arm of arms) {
    const found = selectSchema(arm, value, resolve)
    const score = found ? matchScore(found, value) : -1
    if (score > bestScore) {
      best = found
      bestScore = score
    }
  }
  return best
}

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value

/** Scores how well the outline of a value matches an arm of a union: -1 is no match, and higher is better. */
function matchScore(arm: Schema, value: unknown): number {
  const kind = kindOf(value)
  const types = arm.type === undefined ? undefined : [arm.type].flat()
  if (types && !types.includes(kind) && !(kind === 'number' && types.includes('integer'))) return -1
  if (arm.const !== undefined && arm.const !== value) return -1
  if (Array.isArray(arm.enum) && !arm.enum.includes(value)) return -1
  if (!isRecord(value)) return 1
  const properties = asSchema(arm.properties) ?? {}
  let score = 1
  for (const [name, field] of Object.entries(properties)) {
    if (!Object.hasOwn(value, name) || !isRecord(field)) continue
    const tag = field.const !== undefined || Array.isArray(field.enum)
    score += tag && matchScore(field, value[name]) < 0 ? -1000 : 1
  }
  const missing = Array.isArray(arm.required)
    ? arm.required.filter((name) => !Object.hasOwn(value, String(name))).length
    : 0
  return Math.max(0, score - 100 * missing + 100_000)
}

const decimalSchemas = new WeakMap<Schema, boolean>()

/** Whether a schema contains a decimal; cached per schema, because the values of most schemas need no walk. */
function holdsDecimals(schema: Schema, resolve: Resolve): boolean {
  const before = decimalSchemas.get(schema)
  if (before !== undefined) return before
  decimalSchemas.set(schema, true)
  const found =
    schema['x-decimal'] !== undefined || childSchemas(schema, resolve).some((p) => holdsDecimals(p, resolve))
  decimalSchemas.set(schema, found)
  return found
}

function childSchemas(schema: Schema, resolve: Resolve): Schema[] {
  const target = typeof schema.$ref === 'string' ? resolve(schema.$ref) : undefined
  const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems'].flatMap((keyword) => list(schema[keyword]))
  const maps = ['properties', 'patternProperties'].flatMap((keyword) =>
    Object.values(asSchema(schema[keyword]) ?? {}).filter(isRecord),
  )
  const singles = [schema.items, schema.additionalProperties].filter(isRecord)
  return [...(target ? [target] : []), ...lists, ...maps, ...singles]
}
