/** Strategies that trade at the local venue: own fills, budgets, exits of own parts, and stops that never are missing. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { venueChainId } from '#compose/settings.ts'
import type { StoredRun } from '#market/strategies/stored-run.ts'
import { query } from '#store/query.ts'
import type { StrategyAccountRow, StrategyExecutionRow } from '#store/tables/strategies.ts'
import { eventually } from '../harness/gateway.ts'
import { plantCandles, pullbackOfUptrend } from './planted-candles.ts'
import { startReconciler } from './reconcilers.ts'
import {
  addStrategy,
  addVersion,
  decisionsOf,
  endOfRun,
  fillsOf,
  runStrategy,
  type Strategy,
  startStrategyRun,
} from './strategy-rows.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

const always = { left: 'sma_20', is: 'above', right: '1' }
const condition = {
  asset: 'BTC',
  enter_if: [always],
  order_notional_usd: '400',
  leverage: 5,
  stop_atr: '3',
  target_atr: '8',
}
const dca = { asset: 'ETH', amount_usd: '50' }
const [btc, eth] = [100_000, 3_000]

describe('live strategies', () => {
  let app: VenueApp
  const parts = new AsyncDisposableStack()
  before(async () => {
    app = await createVenueApp({ uncounted: 'the tests look often' })
    parts.use(startReconciler(app, app.main, { tickMs: 200, tradingMs: 1_000, idleMs: 5_000 }))
    parts.use(app.main.features.strategies!.watch())
  })
  beforeEach(async () => {
    await app.market.control('DELETE', '/faults', {})
    await app.price('BTC', btc)
    await app.price('ETH', eth)
    await knowsPrice('BTC', btc)
    await plantCandles(db(), { market: 'BTC', span: '1h', closes: flat(btc), wick: btc * 0.004 })
    await plantCandles(db(), { market: 'ETH', span: '1h', closes: flat(eth), wick: eth * 0.004 })
    await plantCandles(db(), {
      market: 'BTC',
      span: '15m',
      closes: pullbackOfUptrend(btc),
      wick: btc * 0.002,
    })
  })
  after(async () => {
    await parts.disposeAsync()
    await app?.[Symbol.asyncDispose]()
  })

  const db = () => app.main.db
  const flat = (price: number): number[] =>
    Array.from({ length: 1_010 }, (_, at) => price + (at % 2 ? 0.001 : -0.001) * price)
  const knowsPrice = (coin: string, price: number) =>
    eventually(async () => {
      const mid = Number((await app.main.venue!.client.mids()).get(coin))
      return Math.abs(mid / price - 1) < 0.001 ? true : undefined
    }, `the price of ${coin}`)
  const accountOf = async ({ id }: Strategy): Promise<StoredRun> => {
    const [row] = await query<StrategyAccountRow>(
      db(),
      `select * from strategy_account where strategy_id = $1 and mode = 'live'`,
      [id],
    )
    return row!.state as StoredRun
  }
  const live = (user: User, fields: Omit<Parameters<typeof addStrategy>[2], 'mode'>): Promise<Strategy> =>
    addStrategy(db(), user, { budgetUsd: '1000', ...fields, mode: 'live' })
  const spentOf = async ({ id }: Strategy): Promise<number> => {
    const text = 'select strategy_spent($1)::text as micros'
    return Number((await query<{ micros: string }>(db(), text, [id]))[0]!.micros) / 1e6
  }
  const exitsOf = ({ id }: Strategy) =>
    query<StrategyExecutionRow>(
      db(),
      `select * from strategy_execution where strategy_id = $1 and execution_type = 'exit' order by number`,
      [id],
    )
  const childrenOf = (run: string) =>
    query<{ kind: string; outcome: string }>(
      db(),
      'select kind, outcome from task where parent_id = $1 order by id',
      [run],
    )
  const exit = async (strategy: Strategy, reason = 'disabled') => {
    const { startExit } = app.main.features.strategies!
    const scope = { strategyId: strategy.id, mode: strategy.mode }
    const id = await app.main.transactions.run((tx) => startExit(tx, scope, reason))
    app.main.taskEngine.announceQueued()
    return id
  }
  const positionOf = async (user: User, asset = 'BTC') =>
    (await app.call('perp_orders', {}, user)).positions.find((position) => position.asset === asset)
  const isFlat = (user: User, asset = 'BTC') =>
    eventually(async () => ((await positionOf(user, asset)) ? undefined : true), 'no position', 60_000)
  const hasSynced = (strategy: Strategy, isWanted: (state: StoredRun) => boolean, what: string) =>
    eventually(
      async () => {
        const state = await accountOf(strategy)
        return isWanted(state) ? state : undefined
      },
      what,
      60_000,
    )

  /** What the venue itself has of an account, again and again, until it is stopped. */
  function observe(user: User) {
    let isStopped = false
    const bare: string[] = []
    let seen = 0
    const watching = (async () => {
      while (!isStopped) {
        const { positions, orders } = await app.venueState(user)
        const held = positions.find(({ coin, lots }) => coin === 'BTC' && lots !== 0)
        const open = orders.filter(({ phase }) => phase !== 'done' && phase !== 'ended')
        seen++
        if (held && open.length === 0) bare.push(JSON.stringify({ held, orders }))
      }
    })()
    return {
      async stop() {
        isStopped = true
        await watching
        assert.ok(seen > 0)
        return bare
      },
    }
  }

  test('purchases are tasks of their runs, and stop with the budget', async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'dca', config: dca, budgetUsd: '120' })
    const first = await runStrategy(app.main, strategy)
    assert.deepEqual([first.status, first.outcome, first.error], ['completed', 'executed', null])
    assert.deepEqual(await childrenOf(first.id), [{ kind: 'perp_open', outcome: 'executed' }])
    const [fill, ...others] = await fillsOf(db(), strategy)
    assert.deepEqual(
      [others.length, fill?.mode, fill?.reason, fill?.execution_id, fill?.is_exit],
      [0, 'live', 'due', first.id, false],
    )
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const third = await runStrategy(app.main, strategy)
    assert.deepEqual([third.status, third.skip_reason], ['cancelled', 'budget'])
    const fills = await fillsOf(db(), strategy)
    const worth = fills.reduce((sum, { size, price }) => sum + Number(size) * Number(price), 0)
    assert.ok(Math.abs((await spentOf(strategy)) - worth) < 0.001, `${await spentOf(strategy)} ${worth}`)
    assert.equal((await decisionsOf(db(), strategy)).length, 3)
    const ended = await endOfRun(app.main, (await exit(strategy))!)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    await isFlat(user, 'ETH')
    const [last] = (await fillsOf(db(), strategy)).filter(({ is_exit }) => is_exit)
    assert.equal(last?.reason, 'disabled')
    assert.deepEqual((await accountOf(strategy)).positions, {})
    assert.equal(await exit(strategy), undefined)
  })

  test('a day trade has its bracket from the start, ends by its stop, and enters again', async () => {
    const user = await app.trader()
    const config = { asset: 'BTC', order_notional_usd: '300', leverage: 3 }
    const guards = { max_loss_usd: '500' }
    const strategy = await live(user, { type: 'day_trade_farming', config, guards })
    const entered = await runStrategy(app.main, strategy)
    assert.deepEqual([entered.status, entered.outcome], ['completed', 'executed'], JSON.stringify(entered))
    const position = await positionOf(user)
    assert.deepEqual([position?.side, position?.leverage], ['long', 3])
    assert.deepEqual([position?.tp_oids.length, position?.sl_oids.length], [1, 1])
    const again = await runStrategy(app.main, strategy)
    assert.equal((again.decision as { reason: string }).reason, 'position_open')
    const { positions } = await accountOf(strategy)
    const stop = Number(positions.BTC!.stop!.price) / 1e8
    assert.ok(stop < btc && stop > btc * 0.9, String(stop))
    await app.price('BTC', Math.floor(stop * 0.998))
    await hasSynced(strategy, (state) => !state.positions.BTC, 'the stop')
    assert.deepEqual(
      (await fillsOf(db(), strategy))
        .map(({ reason, is_exit, execution_id }) => [reason, is_exit, execution_id])
        .sort(),
      [
        ['pullback_of_uptrend', false, entered.id],
        ['stop', true, entered.id],
      ],
    )
    await isFlat(user)
    await app.price('BTC', btc)
    await knowsPrice('BTC', btc)
    const third = await runStrategy(app.main, strategy)
    assert.equal(third.outcome, 'executed', JSON.stringify(third))
    await endOfRun(app.main, (await exit(strategy))!)
    await isFlat(user)
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
  })

  test('freqtrade #12753, #4837: a guard that trips closes everything, under a kill switch and without access', async () => {
    const user = await app.trader()
    const guards = { max_loss_usd: '4' }
    const config = { ...condition, stop_atr: '8', target_atr: '20' }
    const strategy = await live(user, { type: 'condition', config, guards })
    const twin = await addStrategy(db(), user, { type: 'condition', config, guards, mode: 'paper' })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    assert.equal((await runStrategy(app.main, twin)).outcome, 'executed')
    const enter_if = [{ left: 'price', is: 'below', right: '2500' }]
    const waiting = await live(user, { type: 'condition', config: { ...config, asset: 'ETH', enter_if } })
    assert.equal((await runStrategy(app.main, waiting)).outcome, 'executed')
    const restsToEnter = async () =>
      (await app.call('perp_orders', {}, user)).orders.some(({ asset }) => asset === 'ETH')
    assert.ok(await restsToEnter())
    await app.call('policy_kill', { on: true }, user)
    await eventually(async () => ((await restsToEnter()) ? undefined : true), 'the end of the entry', 20_000)
    await query(db(), `update strategy set status = 'paused', next_at = null where id = any($1::uuid[])`, [
      [strategy.id, twin.id],
    ])
    await query(
      db(),
      `update strategy_version set authority = authority || '{"endedAt": "2026-01-01T00:00:00.000Z"}' where strategy_id = $1`,
      [strategy.id],
    )
    const observing = observe(user)
    await app.price('BTC', btc * 0.985)
    const [ended] = await eventually(
      async () => {
        const exits = await exitsOf(strategy)
        return exits[0]?.ended_at ? exits : undefined
      },
      'the end of the exit',
      60_000,
    )
    assert.deepEqual(
      [ended!.status, ended!.outcome, (ended!.decision as { reason: string }).reason],
      ['completed', 'executed', 'guard_max_loss'],
      JSON.stringify(ended),
    )
    await isFlat(user)
    assert.deepEqual(await observing.stop(), [], 'the position is never without an order that protects it')
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
    const fills = await fillsOf(db(), strategy)
    assert.deepEqual(fills.map(({ reason }) => reason).sort(), ['entry_conditions_true', 'guard_max_loss'])
    const { credits_used } = ended!
    assert.equal(credits_used ?? 0, 0)
    const tripped = await eventually(async () => {
      const events = await query<{ body: { schedule_id: string; guard: string } }>(
        db(),
        `select body from user_event where user_id = $1 and type = 'schedule.guard_tripped'`,
        [user.id],
      )
      return events.length > 1 ? events : undefined
    }, 'both guards')
    assert.deepEqual(
      tripped.map(({ body }) => [body.schedule_id, body.guard]).sort(),
      [
        [strategy.id, 'max_loss'],
        [twin.id, 'max_loss'],
      ].sort(),
      'paper and live trip by the same guard',
    )
  })

  test('an entry that rests is cancelled while the venue account of its user is frozen', async () => {
    const user = await app.trader()
    const enter_if = [{ left: 'price', is: 'below', right: '2500' }]
    const waiting = await live(user, { type: 'condition', config: { ...condition, asset: 'ETH', enter_if } })
    assert.equal((await runStrategy(app.main, waiting)).outcome, 'executed')
    const restsToEnter = async () =>
      (await app.call('perp_orders', {}, user)).orders.some(({ asset }) => asset === 'ETH')
    assert.ok(await restsToEnter())
    const account = { userId: user.id, chainId: venueChainId }
    await app.main.transactions.run((tx) => app.main.custody.policy.freeze(tx, account, 'records differ'))
    await eventually(async () => ((await restsToEnter()) ? undefined : true), 'the end of the entry', 20_000)
    await app.main.transactions.run((tx) => app.main.custody.policy.unfreeze(tx, account))
  })

  test('an entry that rests is cancelled once its strategy is a draft', async () => {
    const user = await app.trader()
    const enter_if = [{ left: 'price', is: 'below', right: '2500' }]
    const waiting = await live(user, { type: 'condition', config: { ...condition, asset: 'ETH', enter_if } })
    assert.equal((await runStrategy(app.main, waiting)).outcome, 'executed')
    const restsToEnter = async () =>
      (await app.call('perp_orders', {}, user)).orders.some(({ asset }) => asset === 'ETH')
    assert.ok(await restsToEnter())
    await query(db(), `update strategy set status = 'draft', next_at = null where id = $1`, [waiting.id])
    await eventually(async () => ((await restsToEnter()) ? undefined : true), 'the end of the entry', 20_000)
  })

  test('an exit does not wait for a run that has decided nothing, and such a run enters nothing after it', async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'condition', config: condition })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    // No candle of this interval is stored, and the venue serves none.
    const config = { ...condition, interval: '4h' }
    await addVersion(db(), strategy, user, { type: 'condition', config, mode: 'live', budgetUsd: '1000' })
    await app.market.control('POST', '/faults', {
      endpoint: 'info',
      type: 'candleSnapshot',
      effect: 'status',
      status: 503,
    })
    const undecided = await startStrategyRun(app.main, strategy)
    await eventually(async () => {
      const text = `select id from task where id = $1 and step = 'decide' and attempts > 0`
      return (await query(db(), text, [undecided])).length > 0 ? true : undefined
    }, 'the run asks for candles again')
    const ended = await endOfRun(app.main, (await exit(strategy))!, 15_000)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    await isFlat(user)
    await plantCandles(db(), { market: 'BTC', span: '4h', closes: flat(btc), wick: btc * 0.004 })
    const late = await endOfRun(app.main, undecided)
    assert.deepEqual(
      [late.outcome, late.skip_reason, (late.decision as { action: string }).action],
      ['not_executed', 'overlap', 'enter'],
      JSON.stringify(late),
    )
    assert.deepEqual(await childrenOf(undecided), [])
    assert.equal(await positionOf(user), undefined)
  })

  test('a guard that trips on paper closes nothing live', async () => {
    const user = await app.trader()
    const config = { ...condition, stop_atr: '8', target_atr: '20' }
    const fields = { type: 'condition', config } as const
    const onPaper = await addStrategy(db(), user, { ...fields, guards: { max_loss_usd: '4' }, mode: 'paper' })
    assert.equal((await runStrategy(app.main, onPaper)).outcome, 'executed')
    const guards = { max_loss_usd: '500' }
    await addVersion(db(), onPaper, user, { ...fields, guards, mode: 'live', budgetUsd: '1000' })
    const strategy = { ...onPaper, mode: 'live' as const }
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    await app.price('BTC', btc * 0.985)
    const [ended] = await eventually(
      async () => {
        const exits = await exitsOf(strategy)
        return exits[0]?.ended_at ? exits : undefined
      },
      'the end of the exit on paper',
      60_000,
    )
    assert.deepEqual([ended!.mode, ended!.outcome], ['paper', 'executed'], JSON.stringify(ended))
    assert.equal((await positionOf(user))?.side, 'long')
    await endOfRun(app.main, (await exit(strategy))!)
    await isFlat(user)
  })

  test('freqtrade #12598: a position whose stop the venue rejects is closed within 5 s, and said', async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'condition', config: { ...condition, stop_atr: '0.5' } })
    await app.market.control('POST', '/faults', {
      endpoint: 'exchange',
      type: 'order',
      effect: 'latency',
      latencyMs: 700,
      count: 1,
    })
    const run = await startStrategyRun(app.main, strategy)
    await eventually(async () => {
      const faults = await app.market.control<{ struck: number }[]>('GET', '/faults')
      return faults.some(({ struck }) => struck > 0) ? true : undefined
    }, 'the order is sent')
    // Within the slippage of the entry, and beyond its stop.
    await app.price('BTC', btc * 0.994)
    const ended = await endOfRun(app.main, run)
    assert.notEqual(ended.outcome, 'executed', JSON.stringify(ended))
    await isFlat(user)
    await hasSynced(strategy, (state) => !state.positions.BTC, 'the closed entry')
    const fills = await fillsOf(db(), strategy)
    assert.deepEqual(new Set(fills.map(({ is_exit }) => is_exit)), new Set([false, true]))
    const times = fills.map(({ at }) => at.getTime())
    assert.ok(Math.max(...times) - Math.min(...times) <= 5_000, times.join())
    assert.match((ended.error as { message: string }).message, /stop|bracket/i)
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
  })

  test('freqtrade #4999: a stop that is gone is placed again', async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'condition', config: condition })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const before = await positionOf(user)
    assert.equal(before?.sl_oids.length, 1)
    await app.call('perp_cancel', { order_id: before!.sl_oids[0]! }, user)
    const replaced = await eventually(
      async () => {
        const position = await positionOf(user)
        return position?.sl_oids.length === 1 && position.sl_oids[0] !== before!.sl_oids[0]
          ? position
          : undefined
      },
      'another stop',
      10_000,
    )
    assert.equal(replaced.size, before?.size)
    await endOfRun(app.main, (await exit(strategy))!)
    await isFlat(user)
  })

  test('freqtrade #4999: a stop that ends at the venue, which no stream reports, is replaced within 5 s', async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'condition', config: condition })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const before = await positionOf(user)
    const [stop] = before!.sl_oids
    const cancelledMs = Date.now()
    await app.market.control('POST', '/foreign/cancel', { user: user.evm, oid: Number(stop) })
    const replaced = await eventually(async () => {
      const { orders } = await app.venueState(user)
      return orders.find(
        ({ oid, phase }) => oid > Number(stop) && phase !== 'done' && !before!.tp_oids.includes(String(oid)),
      )
    }, 'another stop at the venue')
    const tookMs = Date.now() - cancelledMs
    assert.ok(tookMs <= 5_000, `${tookMs} ms without a stop`)
    await app.catchUp()
    assert.deepEqual((await positionOf(user))?.sl_oids, [String(replaced.oid)])
    await endOfRun(app.main, (await exit(strategy))!)
    await isFlat(user)
  })

  test('freqtrade #4999: the filled part of an entry has a stop while the rest still rests', async () => {
    const user = await app.trader()
    const enter_if = [{ left: 'price', is: 'below', right: String(btc - 2) }]
    const strategy = await live(user, { type: 'condition', config: { ...condition, enter_if } })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const seller = await app.trader()
    const part = '0.001'
    await app.call('perp_open', { asset: 'BTC', side: 'short', size: part }, seller)
    assert.equal((await positionOf(user))?.size, part)
    await eventually(
      async () =>
        (await app.venueState(user)).orders.some(({ phase }) => phase === 'armed') ? true : undefined,
      'the stop',
      20_000,
    )
    const [rests] = (await app.call('perp_orders', {}, user)).orders.filter(({ asset }) => asset === 'BTC')
    assert.ok(rests)
    await endOfRun(app.main, (await exit(strategy))!)
    await isFlat(user)
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
    await app.call('perp_close', { asset: 'BTC' }, seller)
  })

  test('freqtrade #9434: a strategy sells nothing that a person has bought beside it', async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'condition', config: condition })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const own = (await positionOf(user))!.size
    await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    const ended = await endOfRun(app.main, (await exit(strategy))!)
    assert.equal(ended.outcome, 'executed', JSON.stringify(ended))
    assert.equal((await positionOf(user))?.size, '0.01')
    const sold = (await fillsOf(db(), strategy)).filter(({ is_exit }) => is_exit)
    assert.equal(String(sold.reduce((sum, { size }) => sum + Number(size), 0)), own)
    await app.catchUp()
    assert.deepEqual((await app.call('perp_orders', {}, user)).orders, [])
    const skipped = await runStrategy(app.main, strategy)
    assert.equal(skipped.skip_reason, 'foreign_position', JSON.stringify(skipped))
    await app.call('perp_close', { asset: 'BTC' }, user)
  })

  test('a part that is too small to be closed beside a position of its user stays open, and is said once', async () => {
    const user = await app.trader()
    const guards = { max_loss_usd: '20' }
    const strategy = await live(user, { type: 'dca', config: dca, guards })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const own = Number((await positionOf(user, 'ETH'))!.size)
    await app.call('perp_open', { asset: 'ETH', side: 'long', size: '0.1' }, user)
    await app.price('ETH', eth / 6)
    const [ended] = await eventually(
      async () => {
        const exits = await exitsOf(strategy)
        return exits[0]?.ended_at ? exits : undefined
      },
      'the end of the exit',
      60_000,
    )
    assert.deepEqual([ended!.status, ended!.outcome], ['failed', 'partial'], JSON.stringify(ended))
    assert.match((ended!.error as { message: string }).message, /ETH is worth less.*perp_close/)
    const watchedMs = async () => {
      const text = 'select watch_at from strategy_account where strategy_id = $1'
      return (await query<StrategyAccountRow>(db(), text, [strategy.id]))[0]!.watch_at!.getTime()
    }
    const beforeMs = await watchedMs()
    await eventually(
      async () => ((await watchedMs()) > beforeMs + 5_000 ? true : undefined),
      'two more looks',
    )
    assert.equal((await exitsOf(strategy)).length, 1)
    const whole = Number((await positionOf(user, 'ETH'))!.size)
    assert.ok(Math.abs(whole - own - 0.1) < 1e-9, `${whole} of ${own} and 0.1`)
    await app.call('perp_close', { asset: 'ETH' }, user)
    await isFlat(user, 'ETH')
    await hasSynced(strategy, (state) => !state.positions.ETH, 'the close by hand')
  })

  test("what a person sells by hand is no longer the strategy's, and its exits end", async () => {
    const user = await app.trader()
    const strategy = await live(user, { type: 'condition', config: condition })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const { positions } = await accountOf(strategy)
    const stop = Number(positions.BTC!.stop!.price) / 1e8
    await app.call('perp_close', { asset: 'BTC' }, user)
    await app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.01' }, user)
    await hasSynced(strategy, (state) => !state.positions.BTC, 'the sale by hand')
    const fills = await fillsOf(db(), strategy)
    assert.deepEqual(fills.map(({ reason, is_exit }) => [reason, is_exit]).sort(), [
      ['by_hand', true],
      ['entry_conditions_true', false],
    ])
    await eventually(
      async () => ((await app.call('perp_orders', {}, user)).orders.length === 0 ? true : undefined),
      'the end of the exits',
      60_000,
    )
    await app.price('BTC', Math.floor(stop * 0.99))
    await app.catchUp()
    assert.equal((await positionOf(user))?.size, '0.01')
    await app.price('BTC', btc)
    await knowsPrice('BTC', btc)
    await app.call('perp_close', { asset: 'BTC' }, user)
  })

  test('two runs of one strategy enter once, for as much as the budget allows', async () => {
    const user = await app.trader()
    const poor = await live(user, { type: 'condition', config: condition, budgetUsd: '399' })
    const skipped = await runStrategy(app.main, poor)
    assert.deepEqual([skipped.status, skipped.skip_reason], ['cancelled', 'budget'], JSON.stringify(skipped))
    assert.deepEqual(await fillsOf(db(), poor), [])
    const strategy = await live(user, { type: 'condition', config: condition, budgetUsd: '400' })
    const [one, other] = await Promise.all([1, 2].map(() => startStrategyRun(app.main, strategy)))
    const ends = await Promise.all([endOfRun(app.main, one!), endOfRun(app.main, other!)])
    assert.deepEqual(
      ends.map(({ outcome }) => outcome).sort(),
      ['executed', 'not_executed'],
      JSON.stringify(ends),
    )
    assert.ok((await spentOf(strategy)) <= 400)
    await endOfRun(app.main, (await exit(strategy))!)
    await isFlat(user)
  })
})
