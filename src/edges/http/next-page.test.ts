import assert from 'node:assert/strict'
import { test } from 'node:test'
import { read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { nextPageOf } from './next-page.ts'

const list = (query: T.TObject, more = {}) =>
  nextPageOf({
    ...read('GET /v1/list', {
      summary: 'List',
      access: 'read',
      query,
      output: T.Array(T.Object({ id: T.String() })),
      ...more,
    }),
  })
const limit = T.Optional(T.Integer({ default: 2 }))
const body = [{ id: 'a' }, { id: 'b' }]

test('a full page names the next one, by its own query and the count or the last entry', () => {
  const skipped = list(T.Object({ limit, skip: T.Optional(T.Integer({ default: 0 })) }))
  const page = { url: '/v1/list?skip=4&status=all', input: { limit: 2, skip: 4 }, body }
  assert.deepEqual(skipped?.(page), ['link', '</v1/list?skip=6&status=all>; rel="next"'])
  const followed = list(T.Object({ limit, after: T.Optional(T.String()) }), { pageAfter: 'id' })
  assert.deepEqual(followed?.({ url: '/v1/list', input: { limit: 2 }, body }), [
    'link',
    '</v1/list?after=b>; rel="next"',
  ])
})

test('a page that is not full, and an answer that is never cut, name none', () => {
  const followed = list(T.Object({ limit, after: T.Optional(T.String()) }), { pageAfter: 'id' })
  assert.deepEqual(followed?.({ url: '/v1/list?limit=3', input: { limit: 3 }, body }), [])
  assert.deepEqual(followed?.({ url: '/v1/list', input: { limit: 2 }, body: [] }), [])
  assert.equal(list(T.Object({ status: T.String() })), undefined)
})
