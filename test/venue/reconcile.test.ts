import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { testFunding } from '../harness/conservation.ts'
import { eventually } from '../harness/gateway.ts'
import { accountRecords, startReconciler } from './reconcilers.ts'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

describe('reconciliation of accounts with the venue', () => {
  let app: VenueApp
  let its: ReturnType<typeof accountRecords>
  let reconciler: ReturnType<typeof startReconciler>
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp({
      quiet: 'planted differences are found to the unit, within half a second of settling',
    })
    its = accountRecords(app)
    reconciler = parts.use(startReconciler(app, app.main))
    await app.price('BTC', 100_000)
    await app.price('ETH', 3_000)
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const buy = (user: User, more: object = {}) =>
    app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.001', ...more }, user)
  const close = (user: User) => app.call('perp_close', { asset: 'BTC' }, user)
  const trader = async () => {
    const user = await app.trader()
    await its.waitForBaseline(user)
    await buy(user)
    await its.waitForMatch(user)
    return user
  }
  const baseline = (user: User, balanceKey: string, by: string) =>
    its.sql(
      `insert into venue_baseline (user_id, venue, balance_key, amount) values ($1, 'hyperliquid', $2, $3)
       on conflict (user_id, venue, balance_key) do update set amount = venue_baseline.amount + excluded.amount`,
      [user.id, balanceKey, by],
    )

  test('fills are recorded once, with their events, although the stream breaks in between', async () => {
    const users = await Promise.all([1, 2, 3].map(() => app.trader()))
    await Promise.all(users.map((user) => its.waitForBaseline(user)))
    let breaking = true
    const breaks = (async () => {
      for (let n = 0; breaking; n += 1) {
        await app.market.control('POST', '/ws/drop')
        if (n % 3 === 0)
          await app.market.control('POST', '/faults', { effect: 'wsDrop', endpoint: 'ws', count: 1 })
        await Promise.all(users.map((user) => buy(user)))
      }
    })()
    for (let n = 0; n < 8; n += 1)
      await Promise.all(users.map((user) => buy(user, { asset: 'ETH', size: '0.01' })))
    breaking = false
    await breaks
    for (const user of users) {
      await its.waitForMatch(user)
      const { fills } = await app.venueState(user)
      const rows = await its.fills(user)
      const reported = fills.map(({ tid }) => String(tid)).sort()
      assert.deepEqual(rows.map(({ trade_id }) => String(trade_id)).sort(), reported)
      const filled = await its.events(user, 'order.filled')
      assert.deepEqual(filled.map(({ fill_id }) => fill_id).sort(), reported)
      assert.ok(filled.every(({ task_id }) => task_id))
      assert.equal((await its.events(user, 'position.changed')).length, reported.length)
    }
  })

  test('a trade between two accounts of ours is recorded for both', async () => {
    const [seller, buyer] = (await Promise.all([trader(), trader()])) as [User, User]
    // Between the two sides of the market maker, so that no other account takes it.
    const limit = { asset: 'BTC', size: '0.002', order_type: 'limit', limit_price: '100000' }
    const asked = await app.call('perp_open', { ...limit, side: 'short' }, seller)
    const taken = await app.call('perp_open', { ...limit, side: 'long' }, buyer)
    assert.equal(asked.result?.order_status, 'resting', JSON.stringify(asked))
    const fillId = String(taken.fills[0]?.fill_id)
    const both: [User, TaskAnswer][] = [
      [seller, asked],
      [buyer, taken],
    ]
    for (const [user, { result }] of both) {
      await its.waitForMatch(user)
      const rows = await its.fills(user)
      const own = rows.filter(({ trade_id }) => String(trade_id) === fillId)
      assert.deepEqual(
        own.map(({ order_id }) => String(order_id)),
        [result.order_id],
      )
      const filled = await its.events(user, 'order.filled')
      const published = filled.filter(({ fill_id }) => fill_id === fillId)
      assert.deepEqual(
        published.map(({ order_id }) => order_id),
        [result.order_id],
      )
    }
  })

  const planted: [string, RegExp, (user: User) => Promise<unknown>][] = [
    [
      'a fill is missing in the record',
      /the position in BTC is 0.001 at the venue and 0 in the gateway's record/,
      async (user) => {
        // Fills of the last seconds are read again anyway.
        await app.market.control('POST', '/advance', { ms: 10_000 })
        await its.waitForMatch(user)
        await its.sql('delete from venue_fill where user_id = $1', [user.id])
      },
    ],
    [
      'the record has a fill too many',
      /the position in ETH is 0 at the venue and 0.5 in the gateway's record/,
      (user) =>
        its.sql(
          `insert into venue_fill (user_id, venue, trade_id, order_id, symbol, signed_size, price, fee, fee_token, cause, at_ms)
           select $1, 'hyperliquid', 1, 1, 'ETH', 0.5, 1, 0, 'USDC', 'order', baseline_at_ms + 1 from venue_account where user_id = $1`,
          [user.id],
        ),
    ],
    [
      'a position is off by one unit',
      /the position in BTC is 0.001 at the venue and 0.00101 in the gateway's record/,
      (user) => baseline(user, 'position:BTC', '0.00001'),
    ],
    [
      'a token is off by one unit',
      /the balance of PURR/,
      (user) => baseline(user, 'spot:PURR', '0.00000001'),
    ],
    ['cash is missing', /the cash on the perp side/, (user) => baseline(user, 'cash', '0.01')],
    [
      'a task reports that nothing was executed although its order was filled',
      /task .* reports not_executed, but 0.001 was filled/,
      (user) =>
        its.sql(
          `update task set outcome = 'not_executed', result = null where user_id = $1 and kind = 'perp_open'`,
          [user.id],
        ),
    ],
    [
      'a task reports another size than was filled',
      /task .* reports 0.002, but 0.001 was filled/,
      (user) =>
        its.sql(
          `update task set result = jsonb_set(result, '{filled_size}', '"0.002"') where user_id = $1 and kind = 'perp_open'`,
          [user.id],
        ),
    ],
    [
      'another client trades with the key of the account',
      /order \d+ in BTC was filled and was not placed by this gateway/,
      async (user) => {
        const order = {
          a: 0,
          b: false,
          p: '99000',
          s: '0.001',
          r: false,
          t: { limit: { tif: 'Ioc' } },
        } as const
        await (await its.ownerClient(user)).order({ orders: [order], grouping: 'na' })
      },
    ],
    [
      'another client withdraws money from the account',
      /money left the account by a withdraw that this gateway did not sign/,
      async (user) => {
        await (await its.ownerClient(user)).withdraw3({ destination: `0x${'1'.repeat(40)}`, amount: '5' })
        testFunding.add(user, {
          asset: 'venue:USDC',
          units: -500_000_000n,
          why: 'withdrawn with a stolen key',
        })
      },
    ],
  ]
  for (const [what, reason, plant] of planted)
    test(`an account is frozen where ${what}`, async () => {
      const user = await trader()
      await plant(user)
      const row = await its.waitForFrozen(user)
      assert.match(row.reason ?? '', reason)
      const flags = await its.events(user, 'security.flagged')
      assert.deepEqual(
        flags.map(({ state, reason: published }) => [state, published]),
        [['frozen', row.reason]],
      )
    })

  test('a frozen account opens nothing, states the reason, and allows exits', async () => {
    const user = await trader()
    const resting = await buy(user, { order_type: 'limit', limit_price: '90000' })
    await baseline(user, 'position:BTC', '0.5')
    const { reason, frozen_since: since } = await its.waitForFrozen(user)
    await assert.rejects(buy(user), (fault) => {
      assert.ok(fault instanceof Fault)
      assert.deepEqual([fault.code, fault.status], ['trading_paused', 403])
      assert.deepEqual([fault.extras.scope, fault.extras.reason], ['venue', reason])
      return true
    })
    const status = await app.call('perp_setup_status', {}, user)
    assert.match(String((status as unknown as { last_error: string }).last_error), /the position in BTC/)
    const cancelled = await app.call('perp_cancel', { order_id: resting.result.order_id }, user)
    assert.equal(cancelled.outcome, 'executed')
    assert.equal((await close(user)).outcome, 'executed')
    assert.equal((await app.call('perp_withdraw', { amount_usd: '10' }, user)).outcome, 'executed')
    const rotated = await app.call('perp_setup', { rotate: true }, user)
    assert.equal(rotated.outcome, 'executed')
    assert.ok(since)
    // Every fill still has its event, and the account is frozen only once.
    await eventually(
      async () => ((await its.events(user, 'order.filled')).length >= 2 ? true : undefined),
      'the fills',
    )
    assert.equal((await its.events(user, 'security.flagged')).length, 1)

    await its.sql(
      `update venue_account set state = 'unfreezing', unfrozen_by = 'an operator: looked at', next_at = now() where user_id = $1`,
      [user.id],
    )
    await eventually(
      async () => ((await its.account(user))?.state === 'active' ? true : undefined),
      'an unfrozen account',
    )
    const written = await its.sql<{ balance_key: string; amount: string; reason: string }>(
      `select balance_key, amount, reason from venue_ledger_entry where user_id = $1 and kind = 'unfreeze'`,
      [user.id],
    )
    assert.deepEqual(
      written.map(({ balance_key, amount }) => [balance_key, Number(amount)]),
      [['position:BTC', -0.5]],
    )
    assert.match(written[0]?.reason ?? '', /^unfrozen by an operator: looked at: the position in BTC/)
    assert.equal((await buy(user)).outcome, 'executed')
    await its.waitForMatch(user)
    assert.deepEqual(
      (await its.events(user, 'security.flagged')).map(({ state }) => state),
      ['frozen', 'unfrozen'],
    )
  })

  test('an account that is unfrozen during a comparison is compared again at once', async () => {
    const user = await trader()
    await baseline(user, 'position:BTC', '0.5')
    await its.waitForFrozen(user)
    await app.market.control('POST', '/faults', {
      effect: 'latency',
      latencyMs: 1_500,
      endpoint: 'info',
      type: 'userFillsByTime',
    })
    const { comparisons } = reconciler.counts()
    await its.sql('update venue_account set next_at = now() where user_id = $1', [user.id])
    await eventually(
      async () => (reconciler.counts().comparisons > comparisons ? true : undefined),
      'a comparison of the frozen account',
    )
    await its.sql(
      `update venue_account set state = 'unfreezing', unfrozen_by = 'an operator', next_at = now() where user_id = $1`,
      [user.id],
    )
    await eventually(
      async () => ((await its.account(user))?.state === 'active' ? true : undefined),
      'an unfrozen account',
    )
    await app.market.control('DELETE', '/faults', {})
  })

  test('an account whose unfreezing fails half way is unfrozen by a later comparison', async () => {
    const user = await trader()
    await baseline(user, 'position:BTC', '0.5')
    await its.waitForFrozen(user)
    await its.sql(`create function refuse_switch() returns trigger language plpgsql as $$
      begin raise exception 'the switch is not changed'; end $$`)
    await its.sql(`create trigger refuse_switch before delete on kill_switch for each row
      when (old.subject like '${user.id}%') execute function refuse_switch()`)
    const { faults } = reconciler.counts()
    await its.sql(
      `update venue_account set state = 'unfreezing', unfrozen_by = 'an operator', next_at = now() where user_id = $1`,
      [user.id],
    )
    await eventually(
      async () => (reconciler.counts().faults > faults ? true : undefined),
      'a comparison that fails',
    )
    await its.sql('drop trigger refuse_switch on kill_switch')
    await its.sql('update venue_account set next_at = now() where user_id = $1', [user.id])
    await eventually(
      async () => ((await its.account(user))?.state === 'active' ? true : undefined),
      'an unfrozen account',
    )
    assert.equal((await buy(user)).outcome, 'executed')
    assert.deepEqual(
      (await its.events(user, 'security.flagged')).map(({ state }) => state),
      ['frozen', 'unfrozen'],
    )
  })

  test('an order that ends without a fill has one event, with and without a stream', async () => {
    const user = await trader()
    const rest = async () => (await buy(user, { order_type: 'limit', limit_price: '90000' })).result.order_id
    const published = async () =>
      (await its.events(user, 'order.cancelled')).map(({ order_id }) => order_id).sort()
    const cancel = (order_id: string) => app.call('perp_cancel', { order_id }, user)
    const [first, second] = [await rest(), await rest()]
    await cancel(first)
    await its.waitForMatch(user)
    await its.sql(`update venue_order set at = at - interval '1 minute' where user_id = $1`, [user.id])
    await cancel(second)
    await its.waitForMatch(user)
    await eventually(async () => ((await published()).length >= 2 ? true : undefined), 'both ends')
    await its.waitForMatch(user)
    assert.deepEqual(await published(), [first, second].sort())
    assert.deepEqual(await its.events(user, 'order.rejected'), [])
  })

  test('a venue that does not answer proves no difference', async () => {
    const user = await trader()
    const before = await its.account(user)
    await app.market.control('POST', '/faults', {
      effect: 'status',
      status: 500,
      endpoint: 'info',
      type: 'clearinghouseState',
    })
    await its.sql('update venue_account set next_at = now() where user_id = $1', [user.id])
    const later = await eventually(async () => {
      const row = await its.account(user)
      return row && row.next_at.getTime() > Date.now() + 10_000 ? row : undefined
    }, 'a failed comparison')
    await app.market.control('DELETE', '/faults', {})
    assert.deepEqual(
      [later.state, later.mismatch, later.reconciled_through_ms],
      ['active', null, before?.reconciled_through_ms],
    )
    await its.waitForMatch(user)
  })

  test('of two instances one reconciles an account, and another takes over from a dead one', async () => {
    const user = await trader()
    const second = await app.instance()
    await using other = startReconciler(app, second)
    const lease = (owner: string, seconds: number) =>
      its.sql(
        'update venue_account set owner = $2, lease_until = now() + make_interval(secs => $3) where user_id = $1',
        [user.id, owner, seconds],
      )
    await lease(second.taskEngine.instanceId, 3_600)
    const { comparisons } = other.counts()
    await buy(user)
    await its.waitForMatch(user)
    assert.ok(other.counts().comparisons > comparisons)
    const gone = '00000000-0000-7000-8000-000000000000'
    await lease(gone, 1)
    await buy(user)
    await its.waitForMatch(user)
    assert.notEqual((await its.account(user))?.owner, gone)
    const { fills } = await app.venueState(user)
    assert.equal((await its.fills(user)).length, fills.length)
    assert.equal((await its.events(user, 'order.filled')).length, fills.length)
  })
})
