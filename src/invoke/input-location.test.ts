import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable } from '#kernel/contract/wire-types.ts'
import { assertDistinctNames, inputLocations, locateIssues } from './input-location.ts'

const params = T.Object({ id: T.String() })
const query = T.Object({ limit: T.Integer() })
const body = Nullable(T.Object({ note: T.String() }))

test('a declared field has its location; any other is in the body, or in the query where there is no body', () => {
  const fields = ['id', 'limit', 'note', 'other']
  assert.deepEqual(fields.map(inputLocations({ params, query, body })), ['path', 'query', 'body', 'body'])
  assert.deepEqual(fields.map(inputLocations({ params, query })), ['path', 'query', 'query', 'query'])
})

test('an issue without a location gets one by its first segment, and one with a location keeps it', () => {
  const locationOf = inputLocations({ params, query, body })
  const found = locateIssues(invalid('limit.0', 'value_error', 'Wrong', { most: 1 }), locationOf)
  assert.deepEqual(found.issues, [
    { location: 'query', path: ['limit', 0], msg: 'Wrong', type: 'value_error', ctx: { most: 1 } },
  ])
  assert.equal(locateIssues(found, locationOf), found)
  const plain = new Fault('conflict', 'Taken')
  assert.equal(locateIssues(plain, locationOf), plain)
})

test('a name that two locations declare is refused', () => {
  const names = (...list: string[]) => new Set(list)
  assertDistinctNames({ path: names('id'), query: names('limit'), body: names('note') }, 'GET /v1/notes')
  assert.throws(
    () => assertDistinctNames({ path: names('id'), query: names(), body: names('id') }, 'PUT /v1/notes/{id}'),
    /PUT \/v1\/notes\/\{id\}: `id` is declared in the path and in the body/,
  )
})
