import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase } from '#store/database.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { testDatabase } from '../harness/cluster.ts'
import { waitUntil } from './embedded-fixture.ts'

async function openTestDatabase(t: TestContext, more: { statementTimeoutMs?: number } = {}) {
  const { url, drop } = await testDatabase()
  const database = openDatabase({ url, poolMax: 4, applicationName: 'database test', ...more })
  t.after(async () => {
    await database.close()
    await drop()
  })
  return { ...database, url }
}

test('columns arrive without loss', async (t) => {
  const { pool } = await openTestDatabase(t)
  const text = `select 9007199254740993::int8 as big, 115792089237316195423570985008687907853269984665640564039457::numeric(78,0)
    as amount, timestamptz '2024-02-29 12:00:00.123+02' as at, date '2024-02-29' as day, array[1, null]::int8[] as list,
    count(*) as count, '{"a":1}'::jsonb as body`
  const expected = {
    big: 9007199254740993n,
    amount: '115792089237316195423570985008687907853269984665640564039457',
    at: new Date('2024-02-29T10:00:00.123Z'),
    day: '2024-02-29',
    list: [1n, null],
    count: 1n,
    body: { a: 1 },
  }
  assert.deepEqual((await pool.query({ name: 'columns', text })).rows[0], expected)
})

test('a transaction commits all or nothing', async (t) => {
  const { pool, transaction } = await openTestDatabase(t)
  await pool.query('create table t (n int primary key)')
  assert.equal(
    await transaction(async (tx) => (await tx.query('insert into t values (1) returning n')).rows[0].n),
    1,
  )
  await assert.rejects(
    transaction(async (tx) => {
      await tx.query('insert into t values (2)')
      throw new Error('changed my mind')
    }),
    /changed my mind/,
  )
  await assert.rejects(
    transaction(async (tx) => {
      await tx.query('insert into t values (3)')
      await tx.query('insert into t values (1)').catch(() => {})
    }),
    /was rolled back: one of its statements failed/,
  )
  assert.deepEqual((await pool.query('select n from t')).rows, [{ n: 1 }])
  assert.equal(pool.idleCount, pool.totalCount)
})

test('conflicting transactions are retried until both have committed', async (t) => {
  const { pool, transaction } = await openTestDatabase(t)
  await pool.query('create table counter (n int); insert into counter values (0)')
  let runs = 0
  let inside = 0
  let release = () => {}
  const both = new Promise<void>((resolve) => {
    release = resolve
  })
  const increment = () =>
    transaction(async (tx) => {
      runs += 1
      const { rows } = await tx.query<{ n: number }>('select n from counter')
      inside += 1
      if (inside === 2) release()
      await both
      await tx.query('update counter set n = $1', [(rows[0]?.n ?? 0) + 1])
    }, 'serializable')
  await Promise.all([increment(), increment()])
  assert.deepEqual((await pool.query('select n from counter')).rows, [{ n: 2 }])
  assert.equal(runs, 3)
})

test('a permanent conflict is given up after three retries', async (t) => {
  const { transaction } = await openTestDatabase(t)
  let runs = 0
  const conflict = transaction(async (tx) => {
    runs += 1
    await tx.query(`do $$ begin raise exception 'again' using errcode = '40P01'; end $$`)
  })
  await assert.rejects(conflict, { code: '40P01' })
  assert.equal(runs, 4)
})

test('a statement has a time limit, and its connection stays usable', async (t) => {
  const { pool } = await openTestDatabase(t, { statementTimeoutMs: 50 })
  await assert.rejects(pool.query('select pg_sleep(10)'), (error) => {
    assert.equal((error as { code?: string }).code, '57014')
    return !isDatabaseUnavailable(error)
  })
  assert.deepEqual((await pool.query('select 1 as one')).rows, [{ one: 1 }])
})

test('a connection lost in use, idle or inside a transaction is reported as such and replaced', async (t) => {
  const { pool, transaction } = await openTestDatabase(t)
  const kill = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name = 'database test'`
  const lost = assert.rejects(
    transaction(async (tx) => {
      await pool.query(kill)
      await tx.query('select 1')
    }),
    isDatabaseUnavailable,
  )
  await lost
  const clients = await Promise.all([pool.connect(), pool.connect()])
  for (const client of clients) client.release()
  await pool.query(kill)
  await waitUntil(() => pool.totalCount === 1, 'the pool noticed')
  assert.deepEqual((await pool.query('select 1 as one')).rows, [{ one: 1 }])
  assert.equal(pool.idleCount, pool.totalCount)
})

test('an unreachable server is reported as such', async () => {
  const places = ['postgresql://nobody@127.0.0.1:1/none', 'postgresql:///none?host=%2Fnowhere&user=nobody']
  for (const url of places) {
    const { pool, close } = openDatabase({
      url,
      poolMax: 1,
      applicationName: 'none',
      connectTimeoutMs: 1_000,
    })
    await assert.rejects(pool.query('select 1'), isDatabaseUnavailable)
    await close()
  }
})

test('a listener receives notifications, and reconnects when its connection is cut', async (t) => {
  const { pool, listen } = await openTestDatabase(t)
  const received: string[] = []
  let connections = 0
  const listener = listen({
    channels: ['wake', 'Odd "name"'],
    onMessage: (channel, payload) => received.push(`${channel}:${payload}`),
    onConnected: () => {
      connections += 1
    },
  })
  await waitUntil(() => connections === 1, 'it listens')
  await pool.query(
    `select pg_notify('wake', 'one'), pg_notify('Odd "name"', 'two'), pg_notify('other', 'three')`,
  )
  await waitUntil(() => received.length === 2, 'both were received')
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'database test listen'
     and datname = current_database()`,
  )
  await waitUntil(() => connections === 2 && listener.connected, 'it listens again')
  await pool.query(`select pg_notify('wake', 'four')`)
  await waitUntil(() => received.length === 3, 'it receives again')
  assert.deepEqual(received, ['wake:one', 'Odd "name":two', 'wake:four'])
  await Promise.race([
    listener.close(),
    delay(30_000, undefined, { ref: false }).then(() => assert.fail('the listener does not close')),
  ])
})
