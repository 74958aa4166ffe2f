import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as T from 'typebox'
import { Fault, invalid } from '#kernel/fault.ts'
import { Nullable } from '#kernel/wire-types.ts'
import { inputLocations, locateIssues } from './input-location.ts'

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
