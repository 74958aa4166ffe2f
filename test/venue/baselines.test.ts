/** A baseline that rolls keeps the sums of a comparison short, and hides no mismatch. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

const dayMs = 24 * 3_600_000

describe('the baseline of a venue account', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp({ quiet: 'records are planted, and their sums have to match to the unit' })
    its = accountRecords(app)
    parts.use(startReconciler(app, app.main))
    await app.price('BTC', 100_000)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const trader = async () => {
    const user = await app.trader()
    await its.waitForBaseline(user)
    await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.001' }, user)
    await its.waitForMatch(user)
    return user
  }
  const baselineMs = async (user: User) => Number((await its.account(user))?.baseline_at_ms)
  /** Fundings that cancel each other out, spread over the minutes before an hour ago. */
  const addHistory = (user: User, count: number) =>
    its.sql(
      `insert into venue_ledger_entry (user_id, venue, key, kind, balance_key, amount, at_ms)
       select $1, 'hyperliquid', 'planted:' || n, 'funding', 'cash', case n % 2 when 0 then 1 else -1 end,
         reconciled_through_ms - 3600000 - n
       from venue_account, generate_series(1, $2::integer) n where user_id = $1`,
      [user.id, count],
    )
  /** The record begins two days ago, as that of an account that has traded for long. */
  const begunLongAgo = (user: User) =>
    its.sql(
      'update venue_account set baseline_at_ms = reconciled_through_ms - $2::bigint where user_id = $1',
      [user.id, dayMs / 2],
    )
  const summed = async (user: User) => {
    const [row] = await its.sql<{ n: number }>(
      `select count(*)::integer as n from venue_ledger_entry l join venue_account a using (user_id, venue)
       where user_id = $1 and at_ms > baseline_at_ms`,
      [user.id],
    )
    return row?.n ?? 0
  }
  const plant = (user: User, by: string) =>
    its.sql(
      `insert into venue_baseline (user_id, venue, balance_key, amount) values ($1, 'hyperliquid', 'position:BTC', $2)
       on conflict (user_id, venue, balance_key) do update set amount = venue_baseline.amount + excluded.amount`,
      [user.id, by],
    )

  test('rolls at a number of records, and a later mismatch is found', async () => {
    const user = await trader()
    await begunLongAgo(user)
    await addHistory(user, 1_000)
    const before = await baselineMs(user)
    await its.waitForMatch(user)
    assert.equal(await baselineMs(user), before, 'few records are no reason')
    await its.sql('delete from venue_ledger_entry where user_id = $1 and key like $2', [user.id, 'planted:%'])
    await addHistory(user, 2_400)
    await its.waitForMatch(user)
    await eventually(async () => (await baselineMs(user)) > before || undefined, 'a new baseline')
    assert.ok((await summed(user)) < 100, String(await summed(user)))
    // The position of the last minutes is still summed, not part of the baseline.
    await its.waitForMatch(user)
    await plant(user, '0.00001')
    const { reason } = await its.waitForFrozen(user)
    assert.match(
      reason ?? '',
      /the position in BTC is 0.001 at the venue and 0.00101 in the gateway's record/,
    )
  })

  test('rolls by age where the account has few records', async () => {
    const user = await trader()
    await its.sql('update venue_account set baseline_at_ms = 1 where user_id = $1', [user.id])
    await its.waitForMatch(user)
    await eventually(async () => (await baselineMs(user)) > 1 || undefined, 'a new baseline')
    await its.waitForMatch(user)
  })

  test('does not roll over a mismatch that is not yet confirmed', async () => {
    const user = await trader()
    await begunLongAgo(user)
    const before = await baselineMs(user)
    await addHistory(user, 2_400)
    await plant(user, '0.00001')
    await its.waitForFrozen(user)
    assert.equal(await baselineMs(user), before)
  })

  test('a deviation within the rounding is recorded when its records leave the sum', async () => {
    const user = await trader()
    await begunLongAgo(user)
    await addHistory(user, 2_400)
    // 2,400 records may be off by a micro-dollar each; the few after the roll may not be off by a thousand.
    await its.sql(
      `update venue_ledger_entry set amount = amount + 0.001 where user_id = $1 and key = 'planted:2'`,
      [user.id],
    )
    await its.waitForMatch(user)
    await eventually(async () => ((await summed(user)) < 100 ? true : undefined), 'a new baseline')
    const rounded = await its.sql<{ balance_key: string; amount: string }>(
      `select balance_key, amount::text from venue_ledger_entry where user_id = $1 and kind = 'rounding'`,
      [user.id],
    )
    assert.deepEqual(
      rounded.map(({ balance_key, amount }) => [balance_key, Number(amount)]),
      [['cash', -0.001]],
    )
    await its.waitForMatch(user)
  })

  test('an order whose fills lie on both sides of the baseline is compared as a whole', async () => {
    const user = await trader()
    await its.sql(
      `with half as (update venue_fill set signed_size = signed_size / 2, fee = fee / 2 where user_id = $1 returning *)
       insert into venue_fill select user_id, venue, trade_id + 1, order_id, cloid, symbol, base, quote, signed_size, price, fee,
         fee_token, realized_pnl, cause, at_ms - 7200000 from half`,
      [user.id],
    )
    await its.sql(
      `with old as (select * from venue_fill where user_id = $1 order by at_ms limit 1),
         based as (update venue_account set baseline_at_ms = old.at_ms from old where venue_account.user_id = $1)
       insert into venue_baseline (user_id, venue, balance_key, amount)
         select $1, 'hyperliquid', 'position:BTC', signed_size from old
         union all select $1, 'hyperliquid', 'cash', balance - signed_size * price - fee from old, lateral (
           select coalesce(sum(amount), 0) as balance from venue_ledger_entry
           where user_id = $1 and balance_key = 'cash' and at_ms <= old.at_ms) x
       on conflict (user_id, venue, balance_key) do update set amount = venue_baseline.amount + excluded.amount`,
      [user.id],
    )
    await its.waitForMatch(user)
  })
})

test('a mismatch that only is logged lasts, and its records leave the sum', async () => {
  await using app = await createVenueApp({ quiet: 'records are planted' })
  await using _reconciler = startReconciler(app, app.main, { balancesFreeze: false })
  const its = accountRecords(app)
  await app.price('BTC', 100_000)
  const user = await app.trader()
  await its.waitForBaseline(user)
  await its.waitForMatch(user)
  await its.sql(
    'update venue_account set baseline_at_ms = reconciled_through_ms - $2::bigint where user_id = $1',
    [user.id, dayMs / 2],
  )
  await its.sql(
    `insert into venue_ledger_entry (user_id, venue, key, kind, balance_key, amount, at_ms)
     select $1, 'hyperliquid', 'planted:' || n, 'funding', 'cash', 0.5, reconciled_through_ms - 3600000 - n
     from venue_account, generate_series(1, 2400) n where user_id = $1`,
    [user.id],
  )
  const compared = async () => {
    const from = new Date()
    await its.sql('update venue_account set next_at = $2 where user_id = $1', [user.id, from])
    return eventually(async () => {
      const row = await its.account(user)
      return row?.checked_at && row.checked_at > from ? row : undefined
    }, 'a comparison')
  }
  const first = await compared()
  assert.match(first.mismatch ?? '', /the cash on the perp side/)
  const [row] = await its.sql<{ n: number }>(
    `select count(*)::integer as n from venue_ledger_entry l join venue_account a using (user_id, venue)
     where user_id = $1 and at_ms > baseline_at_ms`,
    [user.id],
  )
  assert.ok((row?.n ?? 0) < 100, String(row?.n))
  const second = await compared()
  assert.deepEqual([second.state, second.mismatch], ['active', first.mismatch])
})
