import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schema } from '#kernel/contract/decimal-fields.ts'
import { group, implement, read } from '#kernel/contract/operation.ts'
import { Link } from '#kernel/contract/operation-link.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable, OneOf, Page } from '#kernel/contract/wire-types.ts'
import { createLinks } from './answer-links.ts'

const Row = T.Object({ row_id: T.String(), url: Link('rows_get') })
const contract = group('rows', 'Operations of a test.', {
  get: read('GET /v1/rows/{row_id}/whole', {
    summary: 'Get',
    access: 'read',
    params: T.Object({ row_id: T.String() }),
    output: Row,
  }),
})
const operations = implement(contract, { get: async ({ row_id }) => ({ row_id, url: '' }) })
const linksOf = createLinks(operations, () => 'http://here')
const shown = (schema: T.TSchema, value: unknown) => linksOf(schema as unknown as Schema)?.(value)

const linked = (row_id: string) => ({
  row_id,
  url: `http://here/v1/rows/${encodeURIComponent(row_id)}/whole`,
})

test('a link is added wherever the schema declares one, and the value that was answered stays as it was', () => {
  const row = Object.freeze({ row_id: 'a' })
  assert.deepEqual(shown(Row, row), linked('a'))
  assert.deepEqual(shown(Page(Row), { items: [row, { row_id: 'b' }], total: 2 }), {
    items: [linked('a'), linked('b')],
    total: 2,
  })
  assert.deepEqual(shown(Nullable(Row), row), linked('a'))
  assert.equal(shown(Nullable(Row), null), null)
  assert.deepEqual(shown(Row, { row_id: 'a/b' }), linked('a/b'))
})

test('a schema without a link costs nothing, and a value without the id of its link gets none', () => {
  assert.equal(linksOf(T.Object({ row_id: T.String() }) as unknown as Schema), undefined)
  assert.deepEqual(shown(Row, { row_id: 1 }), { row_id: 1 })
})

test('the arm of a tagged union decides whether its data has a link', () => {
  const event = (type: string, data: T.TSchema) => T.Object({ type: OneOf([type]), data })
  const Event = T.Union([event('row', Row), event('fill', T.Object({ row_id: T.String() }))])
  const row = { row_id: 'a' }
  assert.deepEqual(shown(Event, { type: 'row', data: row }), { type: 'row', data: linked('a') })
  assert.deepEqual(shown(Event, { type: 'fill', data: row }), { type: 'fill', data: row })
  assert.deepEqual(shown(Event, { type: 'other', data: row }), { type: 'other', data: row })
})

test('a link to an operation that the door does not serve is refused at the start', () => {
  assert.throws(() => shown(T.Object({ url: Link('rows_put') }), {}), /rows_put/)
})
