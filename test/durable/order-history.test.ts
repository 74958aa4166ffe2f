/** What orders, swaps and payments read does not grow with the orders, quotes and payments of before. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type pg from 'pg'
import { unclaimed } from '#engines/chain-arrivals/claims.ts'
import { ownCallsOf } from '#engines/chain-arrivals/own-batches.ts'
import { basesOf, entryPriceOf } from '#engines/cost-basis/store.ts'
import { orderDeletion } from '#engines/trigger-orders/retention.ts'
import {
  assertOrderLimit,
  cancelledBy,
  marketsWithOrders,
  openOrdersOf,
  openOrdersOn,
  ordersById,
  ordersOf,
  quotesNear,
} from '#engines/trigger-orders/store.ts'
import { raiseTrails } from '#engines/trigger-orders/trailing.ts'
import * as payments from '#features/credits/payment-store.ts'
import { recipientsOf } from '#features/policy/recipient-store.ts'
import { policyDeletions } from '#features/policy/retention.ts'
import { policyStateOf } from '#features/policy/store.ts'
import { swapDeletions } from '#features/swap/retention.ts'
import { isFirstClaim } from '#features/swap/route/quote-store.ts'
import { blocksOf } from '../harness/plan-blocks.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

const rows = 40_000
const ordersOfUser = 15_000
const openOrders = 100
/** The tables have thousands. An open order costs a few: its row, its market and what it waits for. */
const blocksMax = 10 * openOrders

describe('a long history of on-chain trading', () => {
  let fixture: EngineFixture
  const user = newUser()
  const market = 'token:8453:0xaa'
  const id = '01900000-0000-7000-8000-000000000010'
  before(async () => {
    fixture = await openFixture()
    const { rows: sql } = fixture
    const uuid = `('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
    await sql(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, quote_key, input, status, task_id,
         task_end, cancelled_by, expires_at, created_at, updated_at)
       select ${uuid}, case when n <= $2 then $1::uuid else gen_random_uuid() end, 'hook_execute',
         'token:8453:0x' || to_hex(n % 2000), 'lte', n, 'q' || n, '{"lot_left":"1"}',
         (array['fired', 'cancelled', 'expired'])[1 + n % 3], case when n % 3 = 0 then ${uuid} end,
         case when n % 3 = 0 then case when n = 300 then 'failed' else 'completed' end end, case when n % 3 = 1 then gen_random_uuid() end, at, at, at
       from generate_series(1, $3::integer) n, lateral (select now() - make_interval(secs => n) as at) t returning 1`,
      user,
      ordersOfUser,
      rows,
    )
    await sql(
      `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, quote_key, input, status, created_at, updated_at)
       select gen_random_uuid(), $1, 'hook_execute', $2, 'lte', n, 'k' || n, '{}', 'armed', now(), now()
       from generate_series(1, $3::integer) n returning 1`,
      user,
      market,
      openOrders,
    )
    await sql(
      `insert into task (id, shard, user_id, kind, kind_version, status, state, outcome, step, data, input, deadline,
         created_at, updated_at, completed_at)
       select ${uuid}, 0, $1, 'hook_execute', 1, 'completed', 'done', 'executed', 'only', jsonb_build_object('pad', repeat('x', 200)),
         '{}', now(), now(), now(), now() from generate_series(3, $2::integer, 3) n returning 1`,
      user,
      ordersOfUser,
    )
    await sql(
      `insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, at)
       select ${uuid}, ${uuid}, 'sign', 'evm', '{"batch":{"account":"0xOwn","calls":[]}}', '{}', n::text, 'confirmed', 'r', now()
       from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    await sql(
      `insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
       select ${uuid}, 0, 'raw', '0x' || to_hex(n), 'evm', '1', 's', n, 'confirmed', now() from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    await sql(
      `insert into claimed_arrival (chain_id, tx_hash, account, part, claimant, at)
       select '1', '0x' || to_hex(n), '0xown', '0', 'c', now() - make_interval(secs => n) from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    await sql(
      `insert into credit_payment (chain_id, tx_hash, log_index, block, payer, token, amount, state, found_at)
       select '1', '0x' || to_hex(n), 0, n, '0xpayer', 'coin', 1, 'credited', now() from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    await sql(
      `insert into swap_quote_use (quote_id, claim, at) select ${uuid}, ${uuid}, now() from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    await sql(
      `insert into policy_change (change_id, user_id, field, micros, requested_at, effective_at)
       select ${uuid}, gen_random_uuid(), 'perDayMicros', 1, now(), now() from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    await sql(
      `insert into transfer_recipient (recipient_id, user_id, chain_id, address, label, agents, added_by, created_at, effective_at)
       select ${uuid}, gen_random_uuid(), '1', '0x' || n, 'l', 'denied', 'a', now(), now() from generate_series(1, $1::integer) n returning 1`,
      rows,
    )
    const tables =
      'trigger_order,task,effect,tx_attempt,claimed_arrival,credit_payment,swap_quote_use,policy_change,transfer_recipient'
    for (const table of tables.split(',')) await sql(`vacuum analyze ${table}`)
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const reads: Record<string, (db: pg.Pool) => Promise<unknown>> = {
    'markets with orders': (db) => marketsWithOrders(db, 'token:'),
    'quotes near a price': (db) => quotesNear(db, [{ market, low: '40', high: '60' }]),
    'trailing orders below a price': (db) => raiseTrails(db, [{ market, price: '60', places: 2 }]),
    'an order': (db) => ordersById(db, user, [id]),
    'a page of orders': (db) =>
      ordersOf(db, user, { kind: 'hook_execute', limit: 20, after: null, filters: null }),
    'a page of active orders': (db) =>
      ordersOf(db, user, {
        kind: 'hook_execute',
        limit: 20,
        after: null,
        filters: [{ status: 'armed' }],
      }),
    ...Object.fromEntries(
      ([null, 'completed', 'failed', 'cancelled'] as const).map((taskEnd) => [
        `a page of orders that fired, of those that are ${taskEnd ?? 'executing'}`,
        (db: pg.Pool) =>
          ordersOf(db, user, { kind: 'hook_execute', limit: 20, after: null, filters: [{ taskEnd }] }),
      ]),
    ),
    'a later page of orders that failed': (db) =>
      ordersOf(db, user, {
        kind: 'hook_execute',
        limit: 20,
        after: '01900000-0000-7000-8000-000000000100',
        filters: [{ taskEnd: 'failed' }],
      }),
    'open orders': (db) => openOrdersOf(db, user, ['hook_execute']),
    'open orders on a token': (db) => openOrdersOn(db, user, { kind: 'hook_execute', market }),
    'orders that another one cancelled': (db) => cancelledBy(db, [id]),
    'the limit of orders': (db) => assertOrderLimit(db, user, { added: 1 }),
    'claims on a payment': (db) =>
      unclaimed(db, { chain: { id: '1', family: 'evm' }, account: '0xown', claimant: 'x' }, [
        { txHash: '0x10', part: '0' },
      ]),
    'the calls of an own batch': (db) => ownCallsOf(db, { txHash: '0x10', account: '0xOwn' }),
    'the claim of a quote': (db) => isFirstClaim(db, id, id),
    'the cost of what is held': (db) => basesOf(db, user),
    'an entry price': (db) => entryPriceOf(db, user, { chainId: '1', address: '0xaa', decimals: 18 }),
    'pending payments': (db) => payments.pendingPayments(db, 'credits_recharge', 500),
    'counts of payments': (db) => payments.paymentCounts(db),
    'known payments': (db) => payments.knownTransactions(db, '1', ['0x10']),
    'the limits of a user': (db) => policyStateOf(db, user, { since: new Date() }),
    'recipients of a user': (db) => recipientsOf(db, user),
  }
  for (const [name, read] of Object.entries(reads))
    test(name, async () => {
      const blocks = await blocksOf(fixture.admin.pool, read)
      assert.ok(blocks.length > 0, 'no statement was sent')
      assert.ok(Math.max(...blocks) <= blocksMax, `it read ${blocks.join(', ')} blocks`)
    })

  for (const { name, text } of [orderDeletion(0), ...swapDeletions, ...policyDeletions])
    test(`${name}, where nothing is old enough`, async () => {
      const before = new Date(Date.now() - 400 * 86_400_000)
      const blocks = await blocksOf(fixture.admin.pool, (db) => db.query({ text, values: [before, 1_000] }))
      assert.ok(Math.max(...blocks) <= blocksMax, `it read ${blocks.join(', ')} blocks`)
    })
})
