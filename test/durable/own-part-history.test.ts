/** What a run may close is read from what came since the baseline, however long the account and others have traded. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { reduciblePart } from '#engines/venue/records/reducible-part.ts'
import { blocksOf } from '../harness/plan-blocks.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

const fillsBefore = 20_000
const fillsSince = 100
/** A fill since the baseline costs a few blocks: its row, its order, the task of the order and the run. */
const blocksMax = 12 * fillsSince

describe('the part of a position that a schedule holds', () => {
  let fixture: EngineFixture
  const [user, schedule] = [newUser(), newUser()]
  before(async () => {
    fixture = await openFixture()
    const { rows: sql } = fixture
    const all = fillsBefore + fillsSince
    // Every second fill is of this user, and each fill of the last ones has a task of a run.
    const made = `generate_series(1, $1::integer) n, lateral (select
      ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id,
      case when n > $2 or n % 2 = 0 then $3::uuid else gen_random_uuid() end as owner,
      now() - make_interval(mins => $1 - n) as at) each`
    const values = [all, fillsBefore, user]
    await sql(
      `insert into task (id, shard, user_id, parent_id, kind, kind_version, status, state, outcome, step, data, input,
         deadline, created_at, updated_at, completed_at)
       select id, 0, owner, id, 'perp_open', 1, 'completed', 'done', 'executed', 'confirm', '{}', '{}', at, at, at, at
       from ${made} returning 1`,
      ...values,
    )
    await sql(
      `insert into venue_order (cloid, venue, user_id, task_id, leg, symbol, market, is_buy, size, at, status, ended_at)
       select 'c' || n, 'hyperliquid', owner, id, 'entry', 'BTC', 'perp', true, 1, at, 'filled', at from ${made} returning 1`,
      ...values,
    )
    await sql(
      `insert into venue_fill (user_id, venue, trade_id, order_id, cloid, symbol, signed_size, price, fee, fee_token,
         cause, at_ms)
       select owner, 'hyperliquid', n, n, 'c' || n, 'BTC', 1, 100, 0, 'USDC', 'order', extract(epoch from at) * 1000
       from ${made} returning 1`,
      ...values,
    )
    await sql(
      `insert into strategy (id, user_id, title, version, status, notify, created_at, updated_at)
       values ($1, $2, 'a schedule', 1, 'draft', 'all', now(), now()) returning 1`,
      schedule,
      user,
    )
    await sql(
      `insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, status, outcome,
         created_at, ended_at)
       select id, $4, $3, 1, n, 'scheduled', 'live', 'completed', 'executed', at, at from ${made} where n > $2 returning 1`,
      ...values,
      schedule,
    )
    await sql(
      `insert into app_user (id, agent_id, auth_scheme, created_at)
       values ($1::uuid, 'agt_' || translate(upper(right(replace($1::uuid::text, '-', ''), 26)), 'ILOU', '1111'),
         'keypair', now()) on conflict do nothing returning 1`,
      user,
    )
    await sql(
      `insert into venue_account (user_id, venue, account, state, active_at, next_at, baseline_at_ms, reconciled_through_ms)
       select $1, 'hyperliquid', '0x1', 'active', now(), now(),
         extract(epoch from now()) * 1000 - ${fillsSince} * 60000 - 1, extract(epoch from now()) * 1000 returning 1`,
      user,
    )
    await sql(
      `insert into venue_baseline (user_id, venue, balance_key, amount)
       values ($1, 'hyperliquid', 'position:BTC', 1000) returning 1`,
      user,
    )
    await sql(
      `insert into venue_own_part (user_id, venue, balance_key, strategy_id, amount)
       values ($1, 'hyperliquid', 'position:BTC', $2, 30) returning 1`,
      user,
      schedule,
    )
    for (const table of ['task', 'venue_order', 'venue_fill', 'strategy_execution'])
      await sql(`vacuum analyze ${table}`)
  })
  after(() => fixture?.[Symbol.asyncDispose]())

  test('is what it held at the baseline and has opened since, and costs what came since', async () => {
    const run = { schedule, run: schedule, approvedMicros: null, reducesOwn: true } as const
    const total = String(1000 + fillsSince)
    const holding = {
      userId: user,
      market: 'perp',
      symbol: 'BTC',
      isLong: true,
      balance_key: 'position:BTC',
      held: total,
      total,
    } as const
    let part = ''
    const blocks = await blocksOf(fixture.admin.pool, async (db) => {
      part = await reduciblePart(db, run, holding)
    })
    assert.equal(part, String(30 + fillsSince))
    const read = blocks.reduce((sum, each) => sum + each, 0)
    assert.ok(read <= blocksMax, `${read} blocks`)
  })
})
