/**
 * Values from a JSON Schema, and values that break exactly one of its keywords at a known place. Written for the
 * schemas that the gateway publishes: valid requests are drawn from the document alone.
 */
import fc from 'fast-check'

export type Schema = { readonly [keyword: string]: unknown }
export type Loc = (string | number)[]
/** A value that is wrong at `loc` by `keyword` and valid everywhere else. */
export type InvalidValue = { keyword: string; loc: Loc; value: fc.Arbitrary<unknown> }

type Options = {
  /** Resolves a `$ref`. */
  resolve?: (ref: string) => Schema
  /** How deep optional parts are filled; a schema may be recursive. */
  depth?: number
}
type Context = { resolve: (ref: string) => Schema; depth: number }

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const schemasIn = (value: unknown): Schema[] => (Array.isArray(value) ? value.filter(isRecord) : [])
const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

const contextOf = ({ resolve, depth = 4 }: Options): Context => ({
  depth,
  resolve:
    resolve ??
    ((ref) => {
      throw new Error(`unknown keyword of ${ref}`)
    }),
})
const deeper = (context: Context): Context => ({ ...context, depth: context.depth - 1 })

/** References resolved and intersections merged, so that one object has all keywords. */
function flatten(schema: Schema, context: Context): Schema {
  if (typeof schema.$ref === 'string') return flatten(context.resolve(schema.$ref), context)
  const parts = schemasIn(schema.allOf)
  if (parts.length === 0) return schema
  const { allOf: _, ...own } = schema
  const all = [own, ...parts.map((part) => flatten(part, context))]
  return {
    ...Object.assign({}, ...all),
    properties: Object.assign({}, ...all.map(({ properties }) => properties)),
    required: all.flatMap(({ required }) => (Array.isArray(required) ? required : [])),
  }
}

const armsOf = (schema: Schema, context: Context): Schema[] =>
  schemasIn(schema.anyOf ?? schema.oneOf).flatMap((arm) => {
    const found = flatten(arm, context)
    const inner = armsOf(found, context)
    return inner.length > 0 ? inner : [found]
  })

const typesOf = (schema: Schema): string[] =>
  schema.type === undefined ? [] : [schema.type].flat().map(String)

/** Values that the schema allows. */
export const validValue = (schema: Schema, options: Options = {}): fc.Arbitrary<unknown> =>
  validIn(schema, contextOf(options))

function validIn(given: Schema, context: Context): fc.Arbitrary<unknown> {
  const schema = flatten(given, context)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
  const arms = armsOf(schema, context)
  if (arms.length > 0) return fc.oneof(...arms.map((arm) => validIn(arm, context)))
  if (schema['x-decimal'] !== undefined) return decimals(schema)
  const types = typesOf(schema)
  if (types.length === 0) return isRecord(schema.properties) ? objects(schema, context) : anyValue
  return fc.oneof(...types.map((type) => ofType(type, schema, context)))
}

function ofType(type: string, schema: Schema, context: Context): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return strings(schema)
    case 'integer':
      return integers(schema)
    case 'number':
      return numbers(schema)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return arrays(schema, context)
    case 'object':
      return objects(schema, context)
    default:
      throw new Error(`the type ${type} is not known`)
  }
}

const lengthOf = (text: string): number => [...text].length
/** What the gateway stores: whole characters and no zero byte. */
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\u0000')

const formats: Record<string, fc.Arbitrary<string>> = {
  uuid: fc.uuid(),
  'date-time': fc
    .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  date: fc
    .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10)),
  uri: fc.webUrl(),
  email: fc.emailAddress(),
}

function strings(schema: Schema): fc.Arbitrary<string> {
  const lengthMin = numberIn(schema.minLength) ?? 0
  const lengthMax = numberIn(schema.maxLength) ?? Number.POSITIVE_INFINITY
  const fits = (text: string) =>
    lengthOf(text) >= lengthMin && lengthOf(text) <= lengthMax && isStorable(text)
  if (typeof schema.format === 'string' && formats[schema.format]) return formats[schema.format]!.filter(fits)
  if (typeof schema.pattern === 'string') {
    return fc.stringMatching(new RegExp(schema.pattern, 'u'), { size: 'small' }).filter(fits)
  }
  const drawn = { minLength: lengthMin, maxLength: Math.min(lengthMax, lengthMin + 24) }
  return fc.oneof(fc.string(drawn), fc.string({ ...drawn, unit: 'grapheme' })).filter(fits)
}

function integers(schema: Schema): fc.Arbitrary<number> {
  const above = numberIn(schema.exclusiveMinimum)
  const below = numberIn(schema.exclusiveMaximum)
  const min =
    numberIn(schema.minimum) ?? (above === undefined ? Number.MIN_SAFE_INTEGER : Math.floor(above) + 1)
  const max =
    numberIn(schema.maximum) ?? (below === undefined ? Number.MAX_SAFE_INTEGER : Math.ceil(below) - 1)
  return fc.integer({ min: Math.ceil(min), max: Math.floor(max) })
}

function numbers(schema: Schema): fc.Arbitrary<number> {
  const min = numberIn(schema.minimum) ?? numberIn(schema.exclusiveMinimum) ?? -1e9
  const max = numberIn(schema.maximum) ?? numberIn(schema.exclusiveMaximum) ?? Math.max(1e9, min + 1)
  const ends = { minExcluded: schema.exclusiveMinimum === min, maxExcluded: schema.exclusiveMaximum === max }
  return fc.double({ min, max, noNaN: true, noDefaultInfinity: true, ...ends }).map((n) => (n === 0 ? 0 : n))
}

/** Decimal text, or an equal number without an exponent. */
function decimals(schema: Schema): fc.Arbitrary<string | number> {
  const rule = schema['x-decimal']
  const places = Math.min(isRecord(rule) ? (numberIn(rule.places) ?? 18) : 18, 6)
  const scale = 10 ** places
  const min = numberIn(schema.minimum) ?? numberIn(schema.exclusiveMinimum) ?? -1_000
  const max = numberIn(schema.maximum) ?? numberIn(schema.exclusiveMaximum) ?? Math.max(1e6, min * 2 + 1)
  const above = schema.exclusiveMinimum === min ? 1 : 0
  const below = schema.exclusiveMaximum === max ? 1 : 0
  const units = fc.integer({ min: Math.ceil(min * scale) + above, max: Math.floor(max * scale) - below })
  const text = units.map((n) => (n / scale).toFixed(places).replace(/^-(0(?:\.0+)?)$/, '$1'))
  return fc.oneof(text, text.map(Number))
}

function arrays(schema: Schema, context: Context): fc.Arbitrary<unknown[]> {
  const minLength = numberIn(schema.minItems) ?? 0
  if (context.depth <= 0 && minLength === 0) return fc.constant([])
  const item = validIn(isRecord(schema.items) ? schema.items : {}, deeper(context))
  const bounds = { minLength, maxLength: Math.min(numberIn(schema.maxItems) ?? minLength + 3, minLength + 3) }
  if (schema.uniqueItems !== true) return fc.array(item, bounds)
  return fc.uniqueArray(item, { ...bounds, selector: (value) => JSON.stringify(value) })
}

/** A body with a name that reaches for a prototype is rejected as invalid JSON, before any schema applies. */
const anyValue = fc
  .jsonValue({ maxDepth: 1 })
  .filter((value) => !/"(__proto__|constructor)":/.test(JSON.stringify(value)))

const freeName = fc.stringMatching(/^[a-z]{1,8}$/).map((name) => `x_${name}`)

function objects(schema: Schema, context: Context): fc.Arbitrary<Record<string, unknown>> {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const fields = Object.entries(properties).filter(
    ([name, field]) => isRecord(field) && (required.includes(name) || context.depth > 0),
  )
  const known = fc.record(
    Object.fromEntries(fields.map(([name, field]) => [name, validIn(field as Schema, deeper(context))])),
    { requiredKeys: required.filter((name) => Object.hasOwn(properties, name)), noNullPrototype: true },
  )
  const more = isRecord(schema.additionalProperties) ? schema.additionalProperties : undefined
  if (more === undefined && schema.additionalProperties !== true) return known
  const value = more ? validIn(more, deeper(context)) : anyValue
  const extra = fc.dictionary(freeName, value, { maxKeys: context.depth > 0 ? 3 : 0, noNullPrototype: true })
  return fc.tuple(extra, known).map(([free, own]) => ({ ...free, ...own }))
}

/**
 * All ways to break one keyword. Parts that cannot be broken for certain, such as the inside of a union, are omitted.
 */
export const invalidValues = (schema: Schema, options: Options = {}): InvalidValue[] =>
  invalidValuesIn(schema, contextOf(options))

function invalidValuesIn(given: Schema, context: Context): InvalidValue[] {
  if (context.depth < 0) return []
  const schema = flatten(given, context)
  if (Array.isArray(schema.enum) || schema.const !== undefined) return [here('enum', outsideEnum(schema))]
  const arms = armsOf(schema, context)
  if (arms.length > 0) {
    const others = arms.filter((arm) => arm.type !== 'null')
    const wrong = wrongType(
      arms.flatMap(typesOf),
      arms.some((arm) => typesOf(arm).length === 0),
    )
    const inside =
      others.length === 1
        ? invalidValuesIn(others[0]!, context).filter(({ keyword }) => keyword !== 'type')
        : []
    return [...wrong, ...inside]
  }
  const types = typesOf(schema)
  const wrong = wrongType(types, types.length === 0)
  if (schema['x-decimal'] !== undefined) return [...wrong, ...brokenDecimal(schema)]
  if (types.length !== 1) return wrong
  const [type] = types
  if (type === 'string') return [...wrong, ...brokenString(schema)]
  if (type === 'integer' || type === 'number') return [...wrong, ...brokenNumber(schema)]
  if (type === 'array') return [...wrong, ...brokenArray(schema, context)]
  if (type === 'object') return [...wrong, ...brokenObject(schema, context)]
  return wrong
}

const here = (keyword: string, value: fc.Arbitrary<unknown>): InvalidValue => ({ keyword, loc: [], value })

const outsideEnum = (schema: Schema): fc.Arbitrary<unknown> =>
  fc
    .stringMatching(/^[a-z]{3,12}$/)
    .filter((text) => schema.const !== text && !schema.enum?.toString().includes(text))

const samples: Record<string, unknown[]> = {
  string: ['text', ''],
  number: [1.5, -7],
  boolean: [true, false],
  array: [[], [1]],
  object: [{}, { x: 1 }],
  null: [null],
}

function wrongType(types: readonly string[], open: boolean): InvalidValue[] {
  if (open) return []
  const allowed = new Set(types.map((type) => (type === 'integer' ? 'number' : type)))
  const values = Object.entries(samples).flatMap(([type, some]) => (allowed.has(type) ? [] : some))
  return values.length === 0 ? [] : [here('type', fc.constantFrom(...values))]
}

function brokenString(schema: Schema): InvalidValue[] {
  const { minLength, maxLength, pattern, format } = schema
  const broken: InvalidValue[] = []
  if (typeof minLength === 'number' && minLength > 0) {
    broken.push(here('minLength', fc.string({ maxLength: minLength - 1 })))
  }
  if (typeof maxLength === 'number') {
    broken.push(here('maxLength', fc.string({ minLength: maxLength + 1, maxLength: maxLength + 9 })))
  }
  if (typeof pattern === 'string') {
    const matches = new RegExp(pattern, 'u')
    const text = strings({ minLength: minLength ?? 1, ...(maxLength !== undefined && { maxLength }) })
    // Many patterns allow everything but a few characters, which random text rarely contains.
    const odd = fc
      .tuple(text, fc.constantFrom('\u0001', '\n', '\u007f', ' ', '!', '_', 'Z', '-', '.', '\u00e9'))
      .map(([base, mark]) => mark + [...base].slice(1).join(''))
    broken.push(
      here(
        'pattern',
        fc.oneof(text, odd).filter((candidate) => !matches.test(candidate)),
      ),
    )
  }
  if (format === 'uuid' || format === 'date-time')
    broken.push(here('format', fc.constantFrom('none', '12-34')))
  return broken
}

const above = (limit: number): fc.Arbitrary<number> =>
  fc.integer({ min: 1, max: 1_000 }).map((n) => limit + n)
const below = (limit: number): fc.Arbitrary<number> => above(0).map((n) => limit - n)

function brokenNumber(schema: Schema): InvalidValue[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, type } = schema
  const broken: InvalidValue[] = []
  if (typeof minimum === 'number') broken.push(here('minimum', below(minimum)))
  if (typeof maximum === 'number') broken.push(here('maximum', above(maximum)))
  if (typeof exclusiveMinimum === 'number') {
    broken.push(here('exclusiveMinimum', fc.oneof(fc.constant(exclusiveMinimum), below(exclusiveMinimum))))
  }
  if (typeof exclusiveMaximum === 'number') {
    broken.push(here('exclusiveMaximum', fc.oneof(fc.constant(exclusiveMaximum), above(exclusiveMaximum))))
  }
  if (type === 'integer')
    broken.push(
      here(
        'integer',
        integers(schema).map((n) => Math.trunc(n / 1e6) + 0.5),
      ),
    )
  return broken
}

function brokenDecimal(schema: Schema): InvalidValue[] {
  const { pattern: _, type: __, ...bounds } = schema
  const places = isRecord(schema['x-decimal']) ? (numberIn(schema['x-decimal'].places) ?? 18) : 18
  const texts = fc.constantFrom('1,5', 'NaN', '0x1', '1e3', '', ' 1', '--1', `1.${'1'.repeat(places + 1)}`)
  return [here('x-decimal', texts), ...brokenNumber(bounds)]
}

function brokenArray(schema: Schema, context: Context): InvalidValue[] {
  const { minItems, maxItems } = schema
  const items = isRecord(schema.items) ? schema.items : undefined
  const item = validIn(items ?? {}, deeper(context))
  const broken: InvalidValue[] = []
  if (typeof minItems === 'number' && minItems > 0) {
    broken.push(here('minItems', fc.array(item, { maxLength: minItems - 1 })))
  }
  if (typeof maxItems === 'number' && maxItems <= 200) {
    broken.push(here('maxItems', fc.array(item, { minLength: maxItems + 1, maxLength: maxItems + 2 })))
  }
  if (!items || context.depth <= 0) return broken
  const rest = Math.max(0, (numberIn(minItems) ?? 1) - 1)
  const others = fc.array(item, { minLength: rest, maxLength: rest })
  const inside = invalidValuesIn(items, deeper(context)).map(({ keyword, loc, value }) => ({
    keyword,
    loc: [0, ...loc],
    value: fc.tuple(value, others).map(([first, more]) => [first, ...more]),
  }))
  return [...broken, ...inside]
}

function brokenObject(schema: Schema, context: Context): InvalidValue[] {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const whole = objects(schema, context)
  const missing = required.map((name) => ({
    keyword: 'required',
    loc: [name],
    value: whole.map(({ [name]: _, ...rest }) => rest),
  }))
  const extra = {
    keyword: 'additionalProperties',
    loc: ['x_unknown'],
    value: whole.map((v) => ({ ...v, x_unknown: 1 })),
  }
  const inside = Object.entries(properties).flatMap(([name, field]) =>
    (isRecord(field) ? invalidValuesIn(field, deeper(context)) : []).map(({ keyword, loc, value }) => ({
      keyword,
      loc: [name, ...loc],
      value: fc.tuple(whole, value).map(([object, wrong]) => ({ ...object, [name]: wrong })),
    })),
  )
  return [...missing, ...(schema.additionalProperties === false ? [extra] : []), ...inside]
}
