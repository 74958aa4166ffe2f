import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalDecimal, fromUnits } from '#kernel/money/money.ts'
import type { NumberSources } from '#kernel/wire/json.ts'
import { compareDecimals, decimalOf, readDecimals, type Schema, selectSchema } from './decimal-fields.ts'
import * as T from './schema.ts'
import { DecIn, Nullable } from './wire-types.ts'

const asSchema = (schema: T.TSchema): Schema => schema as unknown as Schema

/** The output of a parser that keeps number sources. */
function parsed(text: string): { value: Record<string, unknown>; sources: NumberSources } {
  const sources: NumberSources = new WeakMap()
  const value = JSON.parse(text, function (this: object, key, item, context?: { source?: string }) {
    if (typeof item === 'number' && context?.source !== undefined) {
      const map = sources.get(this) ?? new Map<string, string>()
      sources.set(this, map.set(key, context.source))
    }
    return item
  } as (this: object, key: string, value: unknown) => unknown)
  return { value, sources }
}

function read(schema: T.TSchema, text: string) {
  const { value, sources } = parsed(text)
  const { issues } = readDecimals(asSchema(schema), value, sources)
  return { value, issues }
}

const amount = T.Object({ a: DecIn() })

test('a number keeps the digits of its source text', () => {
  assert.deepEqual(read(amount, '{"a":0.123456789012345678}').value, { a: '0.123456789012345678' })
  assert.deepEqual(read(amount, '{"a":123456789012345678901234567890}').value, {
    a: '123456789012345678901234567890',
  })
  assert.deepEqual(read(amount, '{"a":1e-18}').value, { a: '0.000000000000000001' })
  assert.deepEqual(read(amount, '{"a":1E30}').value, { a: `1${'0'.repeat(30)}` })
  assert.deepEqual(read(amount, '{"a":-0.0}').value, { a: '0' })
})

test('a parsed text is canonical and has no exponent', () => {
  assert.deepEqual(read(amount, '{"a":"12.500"}').value, { a: '12.5' })
  for (const wrong of ['1e3', '1,5', '+1', '01', '.5', '5.', '', ' 1', '0x10', 'NaN', 'Infinity']) {
    const { issues } = read(amount, JSON.stringify({ a: wrong }))
    assert.deepEqual(
      issues.map((issue) => [issue.path, issue.type]),
      [[['a'], 'string_pattern_mismatch']],
      wrong,
    )
  }
})

test('text outside the grammar is rejected by name and never rounded', () => {
  const type = (text: string, schema = amount) => read(schema, text).issues[0]?.type
  assert.equal(type('{"a":1e400}'), 'decimal_whole_digits')
  assert.equal(type('{"a":1e99999}'), 'decimal_whole_digits')
  assert.equal(type('{"a":1e-400}'), 'decimal_max_places')
  assert.equal(type('{"a":"0.1234567890123456789"}'), 'decimal_max_places')
  assert.equal(type(`{"a":"${'9'.repeat(40)}"}`), 'decimal_whole_digits')
  assert.deepEqual(read(T.Object({ a: DecIn({ places: 6 }) }), '{"a":"1.1234567"}').issues, [
    {
      path: ['a'],
      type: 'decimal_max_places',
      msg: 'Decimal input should have no more than 6 decimal places; round it first',
      ctx: { max: 6 },
    },
  ])
  assert.deepEqual(read(T.Object({ a: DecIn({ places: 1 }) }), '{"a":"1.50"}').value, { a: '1.5' })
  assert.deepEqual(read(amount, '{"a":0e9999}').value, { a: '0' })
})

test('bounds hold exactly, beyond the precision of a float, for text and for number', () => {
  const above = T.Object({ a: DecIn({ exclusiveMinimum: 5 }) })
  assert.deepEqual(read(above, '{"a":5.000000000000000001}').issues, [])
  assert.deepEqual(read(above, '{"a":"5.000000000000000001"}').issues, [])
  assert.equal(read(above, '{"a":"5.000"}').issues[0]?.msg, 'Input should be greater than 5')
  const least = T.Object({ a: DecIn({ minimum: 5 }) })
  assert.equal(read(least, '{"a":4.999999999999999999}').issues[0]?.type, 'greater_than_equal')
  assert.deepEqual(read(least, '{"a":5}').value, { a: '5' })
  const most = T.Object({ a: T.Unsafe({ ...DecIn(), maximum: 10, exclusiveMaximum: 11 }) })
  assert.equal(read(most, '{"a":"10.000000000000000001"}').issues[0]?.type, 'less_than_equal')
})

test('a text of absurd length is rejected at once', () => {
  const before = process.cpuUsage()
  assert.equal(read(amount, `{"a":"0.${'0'.repeat(200_000)}1"}`).issues[0]?.type, 'decimal_max_places')
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 1_000_000, `${user + system} us`)
})

test('nested objects, lists, nullable unions and unions by shape are visited', () => {
  const leg = T.Object({ price: DecIn(), kind: T.Literal('leg') })
  const schema = T.Object({
    legs: T.Union([leg, T.Array(leg)]),
    maybe: Nullable(DecIn()),
    deep: T.Optional(T.Object({ rows: T.Array(T.Object({ x: Nullable(DecIn()) })) })),
    byName: T.Record(T.String(), DecIn()),
    plain: T.Number(),
  })
  const { value, issues } = read(
    schema,
    `{"legs":[{"kind":"leg","price":1.10}],"maybe":null,"deep":{"rows":[{"x":2.0},{"x":null},{"x":"a"}]},
      "byName":{"k":1e2},"plain":1.5}`,
  )
  assert.deepEqual(value, {
    legs: [{ kind: 'leg', price: '1.1' }],
    maybe: null,
    deep: { rows: [{ x: '2' }, { x: null }, { x: 'a' }] },
    byName: { k: '100' },
    plain: 1.5,
  })
  assert.deepEqual(
    issues.map((issue) => issue.path),
    [['deep', 'rows', 2, 'x']],
  )
  assert.deepEqual(read(schema, '{"legs":{"kind":"leg","price":3.30},"maybe":0.50}').value, {
    legs: { kind: 'leg', price: '3.3' },
    maybe: '0.5',
  })
})

test('a reference is resolved, also a recursive one', () => {
  const node: Schema = {
    type: 'object',
    properties: { a: asSchema(DecIn()), next: { anyOf: [{ $ref: 'Node' }, { type: 'null' }] } },
  }
  const { value, sources } = parsed('{"a":1.0,"next":{"a":2.0,"next":null}}')
  readDecimals({ $ref: 'Node' }, value, sources, (name) => (name === 'Node' ? node : undefined))
  assert.deepEqual(value, { a: '1', next: { a: '2', next: null } })
})

test('the arm of a union is the one with the matching tag', () => {
  const swap = { type: 'object', required: ['kind'], properties: { kind: { const: 'swap' }, a: {} } }
  const send = { type: 'object', required: ['kind'], properties: { kind: { const: 'send' }, a: {} } }
  assert.equal(selectSchema({ anyOf: [swap, send, { type: 'null' }] }, { kind: 'send', a: 1 }), send)
  assert.equal(selectSchema({ anyOf: [{ type: 'string' }, { type: 'array' }] }, 5), undefined)
})

test('each decimal of the grammar survives as text and as number, to the digit', () => {
  const decimal = fc.tuple(fc.bigInt({ min: -(10n ** 38n), max: 10n ** 38n }), fc.nat(18))
  fc.assert(
    fc.property(decimal, ([units, places]) => {
      const text = fromUnits(units, places)
      assert.deepEqual(read(amount, `{"a":${text}}`), { value: { a: text }, issues: [] })
      assert.deepEqual(read(amount, `{"a":"${text}"}`), { value: { a: text }, issues: [] })
      assert.equal(canonicalDecimal(text), text)
    }),
  )
})

test('any JSON number is parsed exactly or rejected', () => {
  const source = fc.stringMatching(/^-?(0|[1-9]\d{0,45})(\.\d{1,25})?([eE][+-]?\d{1,3})?$/)
  fc.assert(
    fc.property(source, (text) => {
      const { value, issues } = read(amount, `{"a":${text}}`)
      if (issues.length > 0) return
      const out = value.a as string
      assert.equal(canonicalDecimal(out), out)
      if (Number.isFinite(Number(text))) assert.ok(Number(out) === Number(text))
    }),
  )
})

test('the order of decimals is that of their units', () => {
  const side = fc.tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.constantFrom(0, 6, 18))
  fc.assert(
    fc.property(side, side, ([a, aPlaces], [b, bPlaces]) => {
      const left = a * 10n ** BigInt(18 - aPlaces)
      const right = b * 10n ** BigInt(18 - bPlaces)
      const expected = left < right ? -1 : left > right ? 1 : 0
      assert.equal(compareDecimals(fromUnits(a, aPlaces), fromUnits(b, bPlaces)), expected)
    }),
  )
})

test('a zero keeps to the bounds however large its exponent is', () => {
  const positive = DecIn({ exclusiveMinimum: 0 }) as unknown as Schema
  assert.equal(typeof decimalOf('0e999999', positive, { isText: false }), 'object')
  assert.equal(decimalOf('0e999999', DecIn() as unknown as Schema, { isText: false }), '0')
})
