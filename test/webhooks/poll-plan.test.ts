/** A poll reads a bounded part of the cursors, whatever their number. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type ClaimSource, claimStatement } from '#features/notifications/webhooks/claims.ts'
import { countsStatement, endOfSliceStatement } from '#features/notifications/webhooks/cursor-sweep.ts'
import { countKinds } from '#features/notifications/webhooks/delivery-slots.ts'
import { query } from '#store/query.ts'
import { insertCursors, type Reading, readingOf } from '../harness/many-cursors.ts'
import { ownDatabase } from '../harness/own-database.ts'

const cursors = 60_000
const sliceMax = 500
const instanceId = '01900000-0000-7000-8000-ffffffffffff'
const middle = `01900000-0000-7000-8000-${(cursors / 2).toString(16).padStart(12, '0')}`

let own: Awaited<ReturnType<typeof ownDatabase>>
before(async () => {
  own = await ownDatabase()
  await insertCursors(own.database.pool, cursors)
  await query(
    own.database.pool,
    `insert into instance (id, started_at, lease_until) values ($1, now(), now() + interval '1 hour') returning id`,
    [instanceId],
  )
})
after(() => own?.[Symbol.asyncDispose]())

const claimOf = (source: ClaimSource) =>
  claimStatement({
    instanceId,
    now: new Date(),
    source,
    running: { webhooks: [], users: [], kinds: [] },
    counts: countKinds([]),
    spent: [],
  })
const assertBounded = ({ rows, wholeTables }: Reading, rowsMax: number) => {
  assert.deepEqual(wholeTables, [])
  assert.ok(rows <= rowsMax, `${rows} rows are read`)
}

test('the end of a slice, its counts and its claim read the slice alone', async () => {
  const { pool } = own.database
  const end = endOfSliceStatement(middle, sliceMax)
  assertBounded(await readingOf(pool, end), sliceMax + 1)
  const [{ user_id: before } = { user_id: '' }] = await query<{ user_id: string }>(pool, end.text, end.values)
  const range = { from: middle, before }
  // Of three tables, and twice those that are claimed.
  assertBounded(await readingOf(pool, countsStatement(range)), 3 * sliceMax)
  assertBounded(await readingOf(pool, claimOf({ range })), 4 * sliceMax)
})

test('the claim of retries reads those that are due longest, and none of a suspended user counts', async () => {
  assertBounded(await readingOf(own.database.pool, claimOf('retries')), 5_000)
})

test('the claim of a hint reads the cursors of its users', async () => {
  assertBounded(await readingOf(own.database.pool, claimOf({ users: [middle] })), 10)
})
