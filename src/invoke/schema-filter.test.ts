import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as T from 'typebox'
import type { Schema } from '#kernel/contract/decimal-fields.ts'
import { Nullable, OpenObject, Page } from '#kernel/contract/wire-types.ts'
import { filterBySchema } from './schema-filter.ts'

const shown = (schema: T.TSchema, value: unknown) => filterBySchema(schema as unknown as Schema, value)

const Row = T.Object({ id: T.String(), more: Nullable(T.Object({ a: T.Integer() })) })

test('undeclared fields are removed at every depth, through lists, unions and nullables', () => {
  const row = { id: '1', secret: 's', more: { a: 1, secret: 's' } }
  assert.deepEqual(shown(Page(Row), { items: [row, { ...row, more: null }], total: 2, secret: 's' }), {
    items: [
      { id: '1', more: { a: 1 } },
      { id: '1', more: null },
    ],
    total: 2,
  })
})

test('an arm of a union is found by its tag, and each arm keeps its own fields', () => {
  const Swap = T.Object({ kind: T.Literal('swap'), route: T.String() })
  const Send = T.Object({ kind: T.Literal('send'), to: T.String() })
  const either = T.Array(T.Union([Swap, Send]))
  assert.deepEqual(
    shown(either, [
      { kind: 'swap', route: 'r', to: 'x' },
      { kind: 'send', route: 'r', to: 'x' },
    ]),
    [
      { kind: 'swap', route: 'r' },
      { kind: 'send', to: 'x' },
    ],
  )
})

test('open objects and records keep all fields', () => {
  assert.deepEqual(shown(OpenObject, { any: { deep: [1] } }), { any: { deep: [1] } })
  assert.deepEqual(shown(T.Object({ id: T.String() }, { additionalProperties: true }), { id: '1', x: 1 }), {
    id: '1',
    x: 1,
  })
  assert.deepEqual(shown(T.Record(T.String(), Row), { k: { id: '1', secret: 's' } }), { k: { id: '1' } })
  assert.deepEqual(shown(T.Object({ any: T.Unknown() }), { any: { x: 1 }, y: 2 }), { any: { x: 1 } })
})

test('both parts of an intersection are shown and nothing else', () => {
  const both = T.Intersect([T.Object({ a: T.Integer() }), T.Object({ b: Row })])
  assert.deepEqual(shown(both, { a: 1, b: { id: '1', secret: 's' }, secret: 's' }), { a: 1, b: { id: '1' } })
})

test('big integers and dates become text, and values of a wrong type pass unchanged', () => {
  assert.deepEqual(shown(T.Object({ n: T.String(), at: T.String() }), { n: 10n ** 30n, at: new Date(0) }), {
    n: `1${'0'.repeat(30)}`,
    at: '1970-01-01T00:00:00.000Z',
  })
  assert.equal(shown(Row, 'text'), 'text')
  assert.deepEqual(shown(Row, undefined), undefined)
})
