/** The number of blocks that a request reads does not grow with the number of tasks of a user. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type pg from 'pg'
import { ledger } from '#durable/ledger/ledger.ts'
import { createTaskQueries, totalMax } from '#durable/task/task-queries.ts'
import { readLedgerGauges, readTaskGauges } from '#durable/upkeep/task-gauges.ts'
import { keysWrappedByOthers } from '#engines/custody/wallet-store.ts'
import { recentSpendings } from '#engines/venue/orders/pending-spends.ts'
import { boughtRecently, recentlyCancelled } from '#engines/venue/orders/read-after-write.ts'
import { requireAgent } from '#engines/venue/orders/require-trading-key.ts'
import { fillHistory, orderHistory } from '#engines/venue/records/history.ts'
import { lastTaskOf, marketOfRecentOrder, recentOrders } from '#engines/venue/records/order-store.ts'
import { outcomeMismatches, reportedOrders } from '#engines/venue/records/record-store.ts'
import { earnTasksPage, positionsPage } from '#features/earn/store.ts'
import { fillSums } from '#features/predmkt/store/fill-store.ts'
import { findSchedule } from '#features/schedules/store.ts'
import { readEndState } from '#features/strategies/exit-due.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { blocksOf } from '../harness/plan-blocks.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const tasksOfUser = 20_000
/** A trader without a key, whose next call of the set-up depends on earlier tasks. */
const agentless = {
  tradingKeys: { of: async () => ({ current: undefined, waiting: undefined }) },
  limits: { minFundUsd: '5' },
  clock,
}
/** The table has several thousand. */
const blocksMax = 400

describe('a user with a long history', () => {
  let fixture: EngineFixture
  const user = newUser()
  before(async () => {
    fixture = await openFixture()
    await fixture.rows(
      `insert into task (id, shard, user_id, kind, kind_version, status, state, outcome, step, data, input, result,
         deadline, created_at, updated_at, completed_at)
       select ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 0, $1, case n % 2 when 0 then 'perp_open' else 'spot_buy' end,
         1, 'completed', 'done', 'executed', 'only', jsonb_build_object('market', 'perp', 'pad', repeat(md5(n::text), 20)), '{}', '{}',
         at, at, at, at
       from generate_series(1, $2::integer) n, lateral (select now() - make_interval(secs => 60 + $2 - n) as at) t returning id`,
      user,
      tasksOfUser,
    )
    await fixture.rows(
      `insert into venue_fill (user_id, venue, trade_id, order_id, cloid, symbol, base, quote, signed_size, price, fee, fee_token, cause, at_ms)
       select $1, 'hyperliquid', n, n, n::text, case n when 7 then 'RARE' else 'BTC' end, case n when 8 then 'HYPE' end, 'USDC',
         1, 1, 0, 'USDC', case n when 9 then 'liquidation' else 'order' end, n
       from generate_series(1, $2::integer) n returning trade_id`,
      user,
      tasksOfUser,
    )
    await fixture.rows(
      `insert into venue_order (cloid, venue, user_id, task_id, leg, symbol, market, at, ended_at)
       select n::text, 'hyperliquid', $1, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'entry',
         case n when 7 then 'RARE' else 'BTC' end, case n when 8 then 'spot' else 'perp' end, now() - make_interval(secs => n), now()
       from generate_series(1, $2::integer) n returning cloid`,
      user,
      tasksOfUser,
    )
    await fixture.rows(
      `insert into app_user (id, agent_id, auth_scheme, created_at) values ($1, 'agt_' || repeat('0', 26), 'keypair', now()) returning id`,
      user,
    )
    await fixture.rows(
      `insert into earn_position (id, user_id, chain_id, vault, created_at)
       select ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, 'chain', 'vault', now()
       from generate_series(1, $2::integer) n returning id`,
      user,
      tasksOfUser,
    )
    await fixture.rows(
      `insert into account (shard, owner, asset, sub_account, avail, held)
       select 0, $1, 'chain:vault', 'position:01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'),
         case when n % 1000 = 0 then 5 else 0 end, case when n % 1000 = 1 then 5 else 0 end
       from generate_series(1, $2::integer) n returning id`,
      user,
      tasksOfUser,
    )
    await fixture.rows(
      `insert into agent_wallet (id, user_id, venue, address, ciphertext, wrapped_dek, kek_id, version, created_at, retired_at)
       select gen_random_uuid(), $1, 'venue', n::text, '', '', 'former', 1, now(), now() from generate_series(1, $2::integer) n
       returning id`,
      user,
      tasksOfUser,
    )
    // Each hundredth fill is not settled. One outcome was traded by an order of the gateway first, and never again.
    await fixture.rows(
      `insert into prediction_fill (trade_id, order_id, user_id, venue, market_id, outcome_id, outcome, title, protocol,
         side, role, price, size, cash, fee, settlement, matched_at, updated_at, held, held_cost, realized)
       select n, n, $1, 'polymarket', 'market', n % 20, 'Yes', case n when 20 then 'Will it rain?' else '' end, 'v2',
         'buy', 'maker', 500000, 3, 1, 0, case when n % 100 = 19 then case n % 200 when 19 then 'mined' else 'failed' end
           else 'confirmed' end,
         at, at, case when n % 100 <> 19 then n end, 2, 1
       from generate_series(1, $2::integer) n, lateral (select now() - make_interval(secs => $2 - n) as at) t returning trade_id`,
      user,
      tasksOfUser,
    )
    const tables = ['task', 'venue_fill', 'venue_order', 'earn_position', 'account', 'agent_wallet']
    for (const table of [...tables, 'prediction_fill']) await fixture.rows(`vacuum analyze ${table}`)
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const assertBlocksBounded = async (what: string, request: (db: pg.Pool) => Promise<unknown>) => {
    const blocks = await blocksOf(fixture.admin.pool, request)
    assert.ok(blocks.length > 0, `${what} sent no statement`)
    assert.ok(Math.max(...blocks) <= blocksMax, `${what} read ${blocks.join(', ')} blocks`)
  }
  const listOn = (pool: pg.Pool) =>
    createTaskQueries({ transactions: { pool } as never, notifier: {} as never, clock }).list

  test('lists of tasks, by any filter', async () => {
    const page = { skip: 0, limit: 20 }
    for (const filter of [
      {},
      { skip: 9_000 },
      { kind: 'perp_open' },
      { kind: 'perp_open', skip: 9_000 },
      { kind: 'perp_setup' },
      { status: 'completed' as const },
      { status: 'cancelled' as const },
      { status: 'running' as const },
      { status: 'failed' as const, kind: 'spot_buy' },
      { status: 'completed' as const, kind: 'spot_buy' },
      { status: 'completed' as const, kind: 'perp_setup' },
    ])
      await assertBlocksBounded(`the list by ${JSON.stringify(filter)}`, (on) =>
        listOn(on)(user, { ...page, ...filter }),
      )
  })

  test('the results of the last tasks, and the exits that wait for ', async () => {
    const since = new Date(Date.now() - 5_000)
    await assertBlocksBounded('recent orders', (on) =>
      recentOrders(on, { userId: user, kind: 'perp', since }),
    )
    await assertBlocksBounded('the market of an order', (on) =>
      marketOfRecentOrder(on, { userId: user, orderId: '1', kind: 'perp', since }),
    )
    await assertBlocksBounded('spends that a read may not show', (on) =>
      recentSpendings({ db: on, clock }, user),
    )
    await assertBlocksBounded('the last task of a kind', (on) => lastTaskOf(on, user, 'perp_setup'))
    await assert.rejects(requireAgent({ ...agentless, db: fixture.admin.pool }, user), {
      code: 'setup_incomplete',
    })
    await assertBlocksBounded('the next call of the set-up', (on) =>
      requireAgent({ ...agentless, db: on }, user).catch(() => undefined),
    )
    await assertBlocksBounded('the history of positions', (on) =>
      earnTasksPage(on, user, { limit: 51, after: undefined }),
    )
  })

  test('positions by status, and those that are compared with the chain', async () => {
    const vaultRef = { chainId: 'chain', vault: 'vault' }
    const page = { limit: 51, asset: 'chain:vault' }
    const idOf = (n: number) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
    for (const status of ['active', 'withdrawn', undefined] as const)
      for (const after of [undefined, idOf(tasksOfUser / 2)])
        await assertBlocksBounded(`positions by ${status} after ${after}`, (on) =>
          positionsPage(on, user, vaultRef, { ...page, status, after }),
        )
    const { pool } = fixture.admin
    const found = async (status: 'active' | 'withdrawn', after?: string) =>
      (await positionsPage(pool, user, vaultRef, { ...page, limit: 3, status, after })).map(
        ({ id, shares }) => [id, String(shares)],
      )
    assert.deepEqual(await found('active', idOf(5_000)), [
      [idOf(4_001), '5'],
      [idOf(4_000), '5'],
      [idOf(3_001), '5'],
    ])
    assert.deepEqual(await found('withdrawn', idOf(4_002)), [
      [idOf(3_999), '0'],
      [idOf(3_998), '0'],
      [idOf(3_997), '0'],
    ])
    await assertBlocksBounded('the sub-accounts in use', (on) => ledger.subAccounts(on, user, 'chain:vault'))
    assert.equal((await ledger.subAccounts(pool, user, 'chain:vault')).length, 40)
  })

  test('a schedule and the end of its account, where 20,000 runs on paper came before it trades', async () => {
    for (const guards of [{}, { max_loss_usd: '5' }]) {
      const [id, owner] = [newUser(), newUser()]
      const compiled = { operations: [], notes: [], strategy: {} }
      await fixture.rows(
        `with made as (
           insert into strategy (id, user_id, title, version, status, notify, created_at, updated_at)
           values ($1, $2, 'A strategy', 2, 'draft', 'all', now(), now()) returning id)
         insert into strategy_version (strategy_id, version, type, query, agent, mode, on_missed, catch_up_seconds,
           paper_balance_usd, compiled, created_at)
         select id, n, 'condition', 'A strategy', 'ProAgent', case n when 1 then 'paper' else 'live' end, 'skip', 0, 1000,
           case n when 1 then $3::jsonb else $4::jsonb end, now() from made, generate_series(1, 2) n`,
        id,
        owner,
        JSON.stringify({ ...compiled, guards: {} }),
        JSON.stringify({ ...compiled, guards }),
      )
      await fixture.rows(
        `with made as (
           insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, status, decision, created_at, ended_at)
           select gen_random_uuid(), $1, $2, 1, n, 'scheduled', 'paper', 'completed', '{"action": "hold", "reason": "flat"}',
             at, at from generate_series(1, $3::integer) n, lateral (select now() - make_interval(mins => $3 - n) as at) t
           returning id)
         insert into strategy_decision (execution_id, seq, strategy_id, at, decision, inputs_sha256, inputs)
         select id, 1, $1, now(), '{}', '', '{}' from made`,
        id,
        owner,
        tasksOfUser,
      )
      for (const table of ['strategy_version', 'strategy_execution', 'strategy_decision'])
        await fixture.rows(`vacuum analyze ${table}`)
      const found = await findSchedule(fixture.admin.pool, owner, id)
      assert.equal(found?.papered_at !== null, !('max_loss_usd' in guards))
      await assertBlocksBounded('the schedule', (on) => findSchedule(on, owner, id))
      await assertBlocksBounded('the end of its account', (on) =>
        readEndState(on, { strategy_id: id, mode: 'live' }),
      )
    }
  })

  test('keys that are to be wrapped anew, page by page', async () => {
    for (const after of [null, '80000000-0000-0000-0000-000000000000'])
      await assertBlocksBounded('keys under another key-encryption key', (on) =>
        keysWrappedByOthers(on, 'current', { after, limit: 100 }),
      )
  })

  test('the results of the last tasks of a user who had thousands in the last minutes', async () => {
    const trader = newUser()
    await fixture.rows(
      `insert into task (id, shard, user_id, kind, kind_version, status, state, outcome, step, data, input, result,
         deadline, created_at, updated_at, completed_at)
       select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
         0, $1, 'perp_open', 1, 'completed', 'done', 'executed', 'only', jsonb_build_object('market', 'perp', 'symbol', 'BTC', 'pad', repeat(md5(n::text), 20)),
         '{}', '{}', at, at, at, at
       from generate_series(1, 5000) n, lateral (select now() - make_interval(secs => 60 + n / 10.0) as at) t returning id`,
      trader,
    )
    await fixture.rows('vacuum analyze task')
    const since = new Date(Date.now() - 5_000)
    await assertBlocksBounded('recent orders', (on) =>
      recentOrders(on, { userId: trader, kind: 'perp', since }),
    )
    await assertBlocksBounded('the market of an order', (on) =>
      marketOfRecentOrder(on, { userId: trader, orderId: '1', kind: 'perp', since }),
    )
    await assertBlocksBounded('spends that a read may not show', (on) =>
      recentSpendings({ db: on, clock }, trader),
    )
    await assertBlocksBounded('cancels', (db) => recentlyCancelled({ db, clock }, trader))
    await assertBlocksBounded('purchases', (db) => boughtRecently({ db, clock }, trader, 'HYPE'))
  })

  test('fills and orders, by any filter', async () => {
    const page = { userId: user, before: undefined, limit: 20 }
    for (const filter of [
      { kind: 'perp' as const, symbol: undefined },
      { kind: 'perp' as const, symbol: 'RARE' },
      { kind: 'spot' as const, symbol: undefined },
      { kind: 'perp' as const, symbol: 'BTC', before: '5000-5000' },
    ]) {
      await assertBlocksBounded(`fills by ${JSON.stringify(filter)}`, (on) =>
        fillHistory(on, { ...page, ...filter }),
      )
      await assertBlocksBounded(`orders by ${JSON.stringify(filter)}`, (on) =>
        orderHistory(on, { ...page, ...filter }),
      )
    }
    await assertBlocksBounded('the liquidations on record', (on) =>
      reportedOrders(on as never, { user_id: user }, [9], [10]),
    )
    const account = { user_id: user, baseline_at_ms: BigInt(tasksOfUser - 20) }
    await assertBlocksBounded('outcomes that contradict fills', (on) => outcomeMismatches(on, account, 0))
  })

  test('what is held of the outcomes of a prediction market', async () => {
    const owner = { userId: user, venue: 'polymarket' }
    await assertBlocksBounded('the holdings', (db) => fillSums(db, owner))
    const sums = await fillSums(fixture.admin.pool, owner)
    const byOutcome = new Map(sums.map((each) => [each.outcome_id, each]))
    assert.equal(byOutcome.size, 20)
    const common = { market_id: 'market', outcome: 'Yes', protocol: 'v2', held_cost: '2', realized: '1' }
    const rest = { redeemed: '0', payout: '0', unsettled_sell: '0' }
    const [last, titled] = [byOutcome.get('19'), byOutcome.get('0')]
    assert.deepEqual(titled, {
      ...common,
      ...rest,
      outcome_id: '0',
      title: 'Will it rain?',
      held: String(tasksOfUser),
      unsettled_buy: '0',
    })
    assert.deepEqual([last?.held, last?.unsettled_buy], [String(tasksOfUser - 1), '300'])
    assert.deepEqual(await fillSums(fixture.admin.pool, { ...owner, userId: newUser() }), [])
  })

  test('what a scrape of the metrics reads', async () => {
    await assertBlocksBounded('the gauges of tasks', (pool) =>
      readTaskGauges({ pool }, clock, { running: 0, slots: 1 }),
    )
    await assertBlocksBounded('the gauges of the ledger', (pool) => readLedgerGauges({ pool }))
  })

  test('the total of a list ends where its pages end', async () => {
    const page = await listOn(fixture.admin.pool)(user, { skip: 10_000, limit: 100 })
    assert.equal(page.total, totalMax)
    assert.equal(page.tasks.length, 100)
    let sent = 0
    const counting = {
      query: (each: { text: string; values: unknown[] }) => {
        sent += 1
        return fixture.admin.pool.query(each)
      },
    }
    const list = listOn(counting as unknown as pg.Pool)
    for (const expected of [2, 3, 4]) {
      assert.equal((await list(user, { skip: 0, limit: 1 })).total, totalMax)
      assert.equal(sent, expected, 'a history that is longer than the pages is counted once')
    }
    await using a = await fixture.instance({ steps: { only: async () => executed } })
    const other = newUser()
    await a.run(other)
    await a.run(other)
    assert.equal((await a.taskEngine.tasks.list(other, { skip: 0, limit: 1, status: 'completed' })).total, 2)
    assert.equal((await a.taskEngine.tasks.list(other, { skip: 0, limit: 1, status: 'failed' })).total, 0)
  })
})
