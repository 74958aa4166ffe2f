/** A newer release migrates the database while instances of the previous version run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDatabase } from '#store/database.ts'
import { query } from '#store/query.ts'
import { testDatabase } from '../harness/cluster.ts'

test('a statement that reads every column works after a column was added, also in transactions', async () => {
  await using db = await testDatabase()
  const database = openDatabase({ url: db.url, poolMax: 1, applicationName: 'rollout' })
  const { pool } = database
  const inPool = () => query(pool, 'select * from shared')
  const inTransaction = () => database.transaction((tx) => query(tx, 'select * from shared for update'))
  await pool.query('create table shared (a integer)')
  await pool.query('insert into shared values (1)')
  assert.deepEqual([...(await inTransaction()), ...(await inPool())], [{ a: 1 }, { a: 1 }])
  await pool.query('alter table shared add column b integer')
  const wider = { a: 1, b: null }
  assert.deepEqual([...(await inTransaction()), ...(await inPool())], [wider, wider])
  await pool.query('alter table shared add column c integer')
  const widest = { ...wider, c: null }
  assert.deepEqual([...(await inPool()), ...(await inTransaction())], [widest, widest])
  await database.close()
})
