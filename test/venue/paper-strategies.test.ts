/** Strategies on paper at the local venue: each decision once and replayable, fills at its book, guards that flatten. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { candleSpanMs } from '#market/candle.ts'
import { type Windows, windowAt } from '#market/strategies/candle-columns.ts'
import { decide } from '#market/strategies/decide.ts'
import { type DecisionInputs, decisionText, inputsSha256 } from '#market/strategies/decision-record.ts'
import type { StoredRun } from '#market/strategies/stored-run.ts'
import { query } from '#store/query.ts'
import type {
  StrategyAccountRow,
  StrategyDecisionRow,
  StrategyExecutionRow,
} from '#store/tables/strategies.ts'
import { eventually } from '../harness/gateway.ts'
import {
  addStrategy,
  addVersion,
  decisionsOf,
  endOfRun,
  fillsOf,
  newId,
  runStrategy,
  type Strategy,
  startStrategyRun,
} from './strategy-rows.ts'
import { createVenueApp, type User, type VenueApp } from './venue-app.ts'

const always = { left: 'sma_20', is: 'above', right: '1' }
const condition = { asset: 'BTC', enter_if: [always], order_notional_usd: '400', leverage: 5 }
const dca = { asset: 'ETH', amount_usd: '50' }

const reasonOf = (run: StrategyExecutionRow | undefined): string | undefined =>
  (run?.decision as { reason: string } | null | undefined)?.reason

describe('strategies on paper', () => {
  let app: VenueApp
  let watch: AsyncDisposable
  before(async () => {
    app = await createVenueApp({ quiet: 'prices stay where the test puts them' })
    watch = app.main.features.strategies!.watch()
  })
  after(async () => {
    await watch?.[Symbol.asyncDispose]()
    await app?.[Symbol.asyncDispose]()
  })

  const db = () => app.main.db
  const accountOf = async ({ id }: Strategy): Promise<{ row: StrategyAccountRow; state: StoredRun }> => {
    const [row] = await query<StrategyAccountRow>(
      db(),
      'select * from strategy_account where strategy_id = $1',
      [id],
    )
    return { row: row!, state: row!.state as StoredRun }
  }
  const newStrategy = async (user: User, fields: Parameters<typeof addStrategy>[2]) =>
    addStrategy(db(), user, fields)
  const eventsOf = ({ userId }: Strategy, type: string) =>
    query<{ data: { schedule_id: string; guard: string } }>(
      db(),
      'select body as data from user_event where user_id = $1 and type = $2',
      [userId, type],
    )
  const exitsOf = ({ id }: Strategy) =>
    query<StrategyExecutionRow>(
      db(),
      `select * from strategy_execution where strategy_id = $1 and execution_type = 'exit' order by number`,
      [id],
    )
  /** Decides again from what was stored with a decision. */
  const replay = async ({ inputs, decision, inputs_sha256 }: StrategyDecisionRow): Promise<void> => {
    const { config, state, windows: recorded } = inputs as DecisionInputs
    const windows: Record<string, Windows[string]> = {}
    for (const [market, { span_ms, end_ms, candles }] of Object.entries(recorded ?? {})) {
      const [span] = Object.entries(candleSpanMs).find(([, ms]) => ms === span_ms) as [
        keyof typeof candleSpanMs,
        number,
      ]
      const columns = await app.main.features.strategies!.candles.columns(
        { market, span },
        { fromMs: end_ms - candles * span_ms, toMs: end_ms },
      )
      windows[market] = windowAt(columns, candles - 1)!
    }
    const given = recorded === null ? undefined : windows
    assert.equal(decisionText(decide(given, state, config)), decision)
    assert.equal(inputsSha256(given, state, config), inputs_sha256)
  }

  test('a purchase is decided once, filled at the book, and decided again from its record', async () => {
    await app.price('ETH', 3_000)
    const user = await app.addUser()
    const strategy = await newStrategy(user, { type: 'dca', config: dca })
    const first = await runStrategy(app.main, strategy)
    assert.deepEqual([first.status, first.outcome, first.error], ['completed', 'executed', null])
    const [fill, ...others] = await fillsOf(db(), strategy)
    assert.deepEqual([others.length, fill?.is_buy, fill?.reason], [0, true, 'entry'])
    assert.equal(fill?.execution_id, first.id)
    assert.ok(Math.abs(Number(fill?.price) / 3_000 - 1) < 0.001, fill?.price)
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const decisions = await decisionsOf(db(), strategy)
    assert.deepEqual(
      decisions.map(({ seq }) => seq),
      [1, 1],
    )
    assert.deepEqual((first.decision as { inputs_sha256: string }).inputs_sha256, decisions[0]?.inputs_sha256)
    for (const decision of decisions) await replay(decision)
    const { state } = await accountOf(strategy)
    assert.deepEqual(Object.keys(state.positions), ['ETH'])
    assert.equal(state.pending.length, 0)
    const tasks = await query<{ kind: string }>(db(), 'select kind from task where user_id = $1', [user.id])
    assert.deepEqual([...new Set(tasks.map(({ kind }) => kind))], ['schedule_run'])
  })

  test('what the balance and the budget do not cover is skipped, and the decision is stored', async () => {
    const user = await app.addUser()
    const poor = await newStrategy(user, { type: 'dca', config: dca, paperUsd: '20' })
    const skipped = await runStrategy(app.main, poor)
    assert.deepEqual(
      [skipped.status, skipped.skip_reason, (skipped.error as { code: string }).code],
      ['cancelled', 'insufficient_balance', 'insufficient_balance'],
    )
    assert.equal((await decisionsOf(db(), poor)).length, 1)
    const bounded = await newStrategy(user, { type: 'dca', config: dca, budgetUsd: '60' })
    assert.equal((await runStrategy(app.main, bounded)).outcome, 'executed')
    assert.equal((await runStrategy(app.main, bounded)).skip_reason, 'budget')
  })

  test('a guard that trips is reported once, and everything is closed', async () => {
    await app.price('BTC', 100_000)
    const user = await app.addUser()
    const guards = { max_loss_usd: '5' }
    const strategy = await newStrategy(user, { type: 'condition', config: condition })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    await app.price('BTC', 98_000)
    await eventually(async () => {
      const mid = Number((await app.main.venue!.client.mids()).get('BTC'))
      return Math.abs(mid / 98_000 - 1) < 0.001 || undefined
    }, 'the price of BTC')
    // The guards of another version begin with what there is, so none of them trips when it takes the account over.
    await addVersion(db(), strategy, user, { type: 'condition', config: condition, guards })
    const held = await runStrategy(app.main, strategy)
    assert.deepEqual([held.status, held.error], ['completed', null])
    await app.price('BTC', 95_000)
    const [exit] = await eventually(
      async () => {
        const exits = await exitsOf(strategy)
        return exits[0]?.ended_at ? exits : undefined
      },
      'the end of the exit',
      60_000,
    )
    assert.deepEqual(
      [exit?.status, exit?.outcome, reasonOf(exit)],
      ['completed', 'executed', 'guard_max_loss'],
    )
    const { state, row } = await accountOf(strategy)
    assert.deepEqual([state.positions, row.watch_at], [{}, null])
    const fills = await fillsOf(db(), strategy)
    assert.deepEqual(
      fills.map(({ is_exit, reason }) => [is_exit, reason]),
      [
        [false, 'entry'],
        [true, 'guard_max_loss'],
      ],
    )
    assert.equal(exit?.realized_pnl_usd, fills[1]?.realized_pnl_usd)
    const notified = await eventsOf(strategy, 'schedule.guard_tripped')
    assert.deepEqual(
      notified.map(({ data }) => [data.schedule_id, data.guard]),
      [[strategy.id, 'max_loss']],
    )
    for (const decision of await decisionsOf(db(), strategy)) await replay(decision)
    assert.equal((await runStrategy(app.main, strategy)).skip_reason, 'guard')
    await addVersion(db(), strategy, user, { type: 'condition', config: condition, guards })
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    assert.equal((await exitsOf(strategy)).length, 1)
  })

  /** Stops are away from the close, so the price begins there. */
  const priceOfClose = async (user: User): Promise<number> => {
    const { candles } = app.main.features.strategies!
    const hourMs = candleSpanMs['1h']
    const toMs = Math.floor(Date.now() / hourMs) * hourMs
    const time = { fromMs: toMs - hourMs, toMs }
    await candles.fillUntil({ market: 'BTC', span: '1h' }, time, user.id)
    const { close } = await candles.columns({ market: 'BTC', span: '1h' }, time)
    return Math.round(close[0]!)
  }

  test('a stop is filled by the watch, for the run that has placed it', async () => {
    const user = await app.addUser()
    await app.price('BTC', await priceOfClose(user))
    const config = { ...condition, stop_atr: '1', target_atr: '3' }
    const strategy = await newStrategy(user, { type: 'condition', config })
    const entered = await runStrategy(app.main, strategy)
    assert.equal(entered.outcome, 'executed', JSON.stringify(entered))
    const { state } = await accountOf(strategy)
    const stop = Number(state.positions.BTC!.stop!.price) / 1e8
    await app.price('BTC', Math.floor(stop * 0.998))
    const fills = await eventually(
      async () => {
        const found = await fillsOf(db(), strategy)
        return found.length > 1 ? found : undefined
      },
      'the stop',
      60_000,
    )
    assert.deepEqual(
      fills.map(({ reason, execution_id, is_exit }) => [reason, execution_id, is_exit]),
      [
        ['entry', entered.id, false],
        ['stop', entered.id, true],
      ],
    )
    assert.ok(Number(fills[1]?.realized_pnl_usd) < 0)
  })

  test('an exit that is asked for closes everything, one alone is under way, and another follows one that failed', async () => {
    await app.price('ETH', 3_000)
    const user = await app.addUser()
    const strategy = await newStrategy(user, { type: 'dca', config: dca })
    const { startExit } = app.main.features.strategies!
    const exit = () =>
      app.main.transactions.run((tx) =>
        startExit(tx, { strategyId: strategy.id, mode: strategy.mode }, 'disabled'),
      )
    assert.equal(await exit(), undefined)
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    const started = await exit()
    assert.equal(await exit(), started)
    app.main.taskEngine.announceQueued()
    const ended = await endOfRun(app.main, started!)
    assert.deepEqual([ended.outcome, reasonOf(ended)], ['executed', 'disabled'])
    assert.deepEqual((await accountOf(strategy)).state.positions, {})
    assert.equal(await exit(), undefined)
    assert.equal((await runStrategy(app.main, strategy)).outcome, 'executed')
    // The venue trades one of the markets of the strategy no more.
    await query(
      db(),
      `update strategy_version set type = 'rebalance', config = '{"targets": [
         {"asset": "ETH", "share_pct": "10"}, {"asset": "MATIC", "share_pct": "10"}]}' where strategy_id = $1`,
      [strategy.id],
    )
    await query(
      db(),
      `with last as (update strategy set execution_count = execution_count + 1 where id = $1 returning *)
       insert into strategy_execution
         (id, strategy_id, user_id, version, number, execution_type, mode, status, created_at, ended_at)
       select $2, id, user_id, version, execution_count, 'exit', 'paper', 'failed', at, at
       from last, (values (now() - interval '1 minute')) failed (at)`,
      [strategy.id, newId()],
    )
    const resumed = await eventually(
      async () => ((await exitsOf(strategy))[2]?.ended_at ? exitsOf(strategy) : undefined),
      'the end of another exit',
      60_000,
    )
    assert.deepEqual(
      resumed.map((run) => [run.status, reasonOf(run)]),
      [
        ['completed', 'disabled'],
        ['failed', undefined],
        ['completed', 'disabled'],
      ],
    )
    assert.deepEqual((await accountOf(strategy)).state.positions, {})
    for (const decision of await decisionsOf(db(), strategy)) await replay(decision)
  })

  test('many runs of one user have a decision each, and together no more than the books showed', async () => {
    const user = await app.addUser()
    const strategies = await Promise.all(
      Array.from({ length: 12 }, () => newStrategy(user, { type: 'dca', config: dca })),
    )
    const runs = await Promise.all(strategies.map((strategy) => startStrategyRun(app.main, strategy)))
    for (const [at, id] of runs.entries()) {
      assert.equal((await endOfRun(app.main, id)).outcome, 'executed')
      assert.equal((await decisionsOf(db(), strategies[at]!)).length, 1)
    }
  })
})
