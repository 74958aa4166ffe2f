import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statementLabel } from './statement-failpoints.ts'

test('a statement is named by its operation and table', () => {
  assert.equal(statementLabel('select * from task_step($1::jsonb)'), 'task_step')
  assert.equal(statementLabel('update nonce_sequence set next = next + 1'), 'update nonce_sequence')
  assert.equal(statementLabel('insert into "effect" (id) values ($1)'), 'insert effect')
  assert.equal(statementLabel('select * from task where id = $1'), 'select task')
  assert.equal(statementLabel('COMMIT'), 'commit')
})
