/** What is shown and kept of a strategy: its fills, runs, accounts and files, and how it differs from a backtest. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { deletionJobs } from '#durable/upkeep/retention.ts'
import { createBacktests } from '#engines/backtests/backtests.ts'
import { createCandleStore } from '#engines/candles/candle-store.ts'
import { createFundingStore } from '#engines/candles/funding-store.ts'
import { strategyRetentionJobs } from '#engines/strategy-slots/strategy-run-retention.ts'
import { executionPage } from '#features/schedules/executions.ts'
import { pastDayEnds } from '#features/schedules/recurrence/past-times.ts'
import { transactionsOf } from '#features/schedules/run-transactions.ts'
import { findSchedule, insertVersion, type NewVersion } from '#features/schedules/store.ts'
import { strategyView } from '#features/schedules/strategy-view.ts'
import type { StrategyTerms } from '#features/strategies/mode-driver.ts'
import { paperLevelsDeletion } from '#features/strategies/paper-levels.ts'
import { createStrategyReports } from '#features/strategies/reports.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { toStoredRun } from '#market/strategies/stored-run.ts'
import { openRun, type StrategyRun } from '#market/strategies/strategy-run.ts'
import { query } from '#store/query.ts'
import type { StrategyFillRow } from '#store/tables/strategies.ts'
import { testDatabase } from '../harness/cluster.ts'
import { openTestCore, type TestCore } from '../harness/core.ts'
import { eventually } from '../harness/gateway.ts'
import { insertSchedule } from './schedule-fixture.ts'

const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 86_400_000
const nowMs = Math.floor(Date.now() / hourMs) * hourMs
const openedMs = nowMs - 5 * hourMs
const clock = { now: () => new Date(nowMs) }
const user = crypto.randomUUID()

const terms = (strategyId: string): StrategyTerms => ({
  strategyId,
  userId: user,
  version: 1,
  mode: 'paper',
  config: {
    decision: {
      strategy: { type: 'dca', asset: 'ETH', amount_usd: '20' },
      markets: {
        ETH: {
          kind: 'perp',
          size_decimals: 4,
          price_decimals: 2,
          leverage_max: 20,
          venue_leverage_max: 20,
          min_order_usd: '10',
        },
      },
    },
    guards: { max_loss_usd: '100', on_trip: 'flatten' },
    budgetMicros: null,
  },
  span: '1h',
  timezone: 'UTC',
  initialMicros: 1_000_000_000n,
})

const held = (run: StrategyRun): StrategyRun => ({
  ...run,
  account: {
    ...run.account,
    cashMicros: 999_982_000n,
    feesMicros: 18_000n,
    spentMicros: 40_060_000n,
    positions: new Map([
      [
        'ETH',
        {
          isLong: true,
          sizeUnits: 200n,
          costMicros: 40_060_000n,
          leverage: 1,
          isCross: false,
          openedMs,
          targetFromMs: openedMs,
          feesMicros: 18_000n,
          fundingMicros: 0n,
        },
      ],
    ]),
  },
  marks: new Map([['ETH', 200_000_000_000n]]),
})

describe('the records of a strategy', () => {
  const parts = new AsyncDisposableStack()
  let core: TestCore
  before(async () => {
    const { url } = parts.use(await testDatabase())
    core = parts.use(await openTestCore({ databaseUrl: url }))
  })
  after(() => parts.disposeAsync())

  const rows = <Row extends object>(text: string, ...values: unknown[]) => query<Row>(core.db, text, values)

  const addStrategy = async () => {
    const id = await insertSchedule(core.db, user, { query: 'buy eth', authority: {} })
    await rows(
      `update strategy_version set type = 'dca', mode = 'paper', created_at = $2,
         config = '{"asset": "ETH", "amount_usd": "20"}', guards = '{"max_loss_usd": "100"}' where strategy_id = $1`,
      id,
      new Date(openedMs - dayMs),
    )
    return id
  }
  const addAccount = (strategyId: string) =>
    rows(
      `insert into strategy_account (id, strategy_id, mode, user_id, version, state, cursor, opened_at, updated_at)
       values (gen_random_uuid(), $1, 'paper', $2, 1, $3, '{}', $4, $4)`,
      strategyId,
      user,
      JSON.stringify(toStoredRun(held(openRun(1_000_000_000n, nowMs + hourMs)))),
      new Date(openedMs),
    )
  /** Makes a copy of the first version with changes the present one. */
  const addVersion = async (strategyId: string, changes: { version: number; mode?: 'live' }) => {
    await rows(
      `insert into strategy_version select (jsonb_populate_record(v, $2)).* from strategy_version v
       where strategy_id = $1 and version = 1`,
      strategyId,
      JSON.stringify(changes),
    )
    await rows('update strategy set version = $2 where id = $1', strategyId, changes.version)
  }
  /** A run on paper that has decided at its slot. */
  const addRun = async (strategyId: string, atMs: number, { reason = 'due', type = 'scheduled' } = {}) => {
    const id = uuidv7(new Date(atMs), systemRandom)
    const decision = {
      action: 'enter',
      reason,
      text: 'entry: buy 0.01 ETH at the market, because its time has come',
    }
    await rows(
      `with numbered as (update strategy set execution_count = execution_count + 1 where id = $2
         returning id, user_id, execution_count)
       insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, slot, status,
         outcome, decision, created_at, started_at, ended_at)
       select $1, id, user_id, 1, execution_count, $5, 'paper', $3, 'completed', 'executed', $4, $3, $3, $3
       from numbered`,
      id,
      strategyId,
      new Date(atMs),
      JSON.stringify(decision),
      type,
    )
    await rows(
      `insert into strategy_decision (execution_id, seq, strategy_id, at, decision, inputs_sha256, inputs)
       values ($1, 1, $2, $3, '{}', 'hash', '{}')`,
      id,
      strategyId,
      new Date(atMs),
    )
    return id
  }
  const addFill = (
    strategyId: string,
    fields: Partial<StrategyFillRow> & Pick<StrategyFillRow, 'fill_id' | 'at'>,
  ) => {
    const row = {
      strategy_id: strategyId,
      mode: 'paper',
      execution_id: null,
      asset: 'ETH',
      is_buy: true,
      size: '0.01',
      price: '2003',
      fee_usd: '0.009',
      realized_pnl_usd: null,
      reason: 'due',
      is_exit: false,
      ...fields,
      fill_id: String(fields.fill_id),
    }
    return rows(
      'insert into strategy_fill select * from jsonb_populate_record(null::strategy_fill, $1)',
      JSON.stringify(row),
    )
  }
  const at = (ms: number) => new Date(ms)

  test('a run on paper shows how a strategy decides unless it had no candles, or closed what was open', async () => {
    const id = await addStrategy()
    await rows(
      `update strategy_version set compiled = '{"strategy": {"type": "dca"}, "guards": {}}' where strategy_id = $1`,
      id,
    )
    await addVersion(id, { version: 2, mode: 'live' })
    const paperedAt = async () => (await findSchedule(core.db, user, id))?.papered_at?.getTime() ?? null
    await addRun(id, openedMs, { reason: 'not_enough_history' })
    await addRun(id, openedMs + 1, { reason: 'guard_max_loss', type: 'exit' })
    assert.equal(await paperedAt(), null)
    await addRun(id, openedMs - 1)
    assert.equal(await paperedAt(), openedMs - 1)
  })

  test('transactions are the fills of both modes, the newest first, with the decision that they carry out', async () => {
    const id = await addStrategy()
    const run = await addRun(id, openedMs)
    await addFill(id, { fill_id: 1n, at: at(openedMs + 200), execution_id: run })
    await addFill(id, {
      fill_id: 77n,
      mode: 'live',
      at: at(openedMs + hourMs),
      is_buy: false,
      is_exit: true,
      realized_pnl_usd: '-0.50',
      reason: 'by_hand',
    })
    await addFill(id, { fill_id: 2n, at: at(openedMs + 2 * hourMs), execution_id: run, reason: 'stop' })
    const { items, total } = await transactionsOf(core.db, id, { skip: 0, limit: 10 })
    assert.equal(total, 3)
    assert.deepEqual(
      items.map((item) => [item.id, item.mode, item.execution_id, item.reason, item.decision_seq]),
      [
        ['paper-2', 'paper', run, 'stop', 1],
        ['live-77', 'live', null, 'by_hand', null],
        ['paper-1', 'paper', run, 'due', 1],
      ],
    )
    assert.deepEqual(
      [items[1]?.realized_pnl_usd, items[1]?.amount_usd, items[1]?.fee, items[1]?.tx_hash],
      ['-0.5', '20.03', '0.009', null],
    )
    const page = await transactionsOf(core.db, id, { skip: 1, limit: 1 })
    assert.deepEqual(
      page.items.map((item) => item.id),
      ['live-77'],
    )
  })

  test('a run on paper shows what its entries were worth, and what its exits have realised since', async () => {
    const id = await addStrategy()
    const run = await addRun(id, openedMs)
    await addFill(id, { fill_id: 1n, at: at(openedMs), execution_id: run })
    await addFill(id, {
      fill_id: 2n,
      at: at(openedMs + hourMs),
      execution_id: run,
      is_buy: false,
      is_exit: true,
      realized_pnl_usd: '1.25',
    })
    const files = { linkOf: async () => ({ url: '', expiresAt: clock.now() }) }
    const page = (input: object) => executionPage({ db: core.db, clock, files }, id, input, 20)
    const [shown] = (await page({ fields: 'full' })).items
    assert.deepEqual(
      [shown?.mode, shown?.spent_usd, shown?.realized_pnl_usd, shown?.decision?.text?.slice(0, 17)],
      ['paper', '20.03', '1.25', 'entry: buy 0.01 E'],
    )
    assert.deepEqual(shown?.config, { asset: 'ETH', amount_usd: '20' })
    assert.equal((await page({ execution_type: 'paper' })).total, 1)
    assert.equal((await page({ execution_type: 'exit' })).total, 0)
  })

  test('a schedule shows what is open, what was won, and the last decision', async () => {
    const id = await addStrategy()
    await addAccount(id)
    await addRun(id, openedMs)
    const row = await findSchedule(core.db, user, id)
    const view = strategyView(row!, { sizeDecimals: { ETH: 4 } })
    assert.deepEqual(
      view.position?.map(({ asset, mode, size, entry_price, mark_price }) => [
        asset,
        mode,
        size,
        entry_price,
        mark_price,
      ]),
      [['ETH', 'paper', '0.02', '2003', '2000']],
    )
    assert.deepEqual(
      [
        view.pnl?.realized_usd,
        view.pnl?.paper?.realized_usd,
        view.pnl?.paper?.unrealized_usd,
        view.budget_spent_usd,
      ],
      ['0', '-0.018', '-0.06', '40.06'],
    )
    assert.deepEqual(
      [view.last_decision?.reason, view.last_decision?.mode, view.drift],
      ['due', 'paper', null],
    )
  })

  /** Stores candles at one price, as far back as a decision reads, and says that the venue was asked for all of them. */
  const addCandles = async () => {
    for (const [span, spanMs, count] of [
      ['1h', hourMs, 1_100],
      ['1m', minuteMs, 400],
    ] as const) {
      await rows(
        `insert into candle (market, span, start_ms, open, high, low, close, volume)
         select 'ETH', $1, $2::bigint - n * $3::bigint, 2000, 2000, 2000, 2000, 1 from generate_series(1, $4::integer) n`,
        span,
        nowMs,
        spanMs,
        count,
      )
      await rows(
        `insert into candle_series (market, span, filled_from_ms, filled_to_ms, followed_until)
         values ('ETH', $1, $2, $3, now())`,
        span,
        nowMs - count * spanMs,
        nowMs,
      )
    }
    await rows(
      `insert into funding_series (market, filled_from_ms, filled_to_ms) values ('ETH', 0, $1)`,
      nowMs,
    )
  }
  const noVenue = () => Promise.reject(new Error('the venue is not asked'))

  test('a run that acted has a report, a curve and its fills, and is compared with a backtest once a day', async () => {
    const id = await addStrategy()
    await addAccount(id)
    await addCandles()
    const slots = [openedMs + hourMs, openedMs + 2 * hourMs]
    const runs = []
    for (const [n, slotMs] of slots.entries()) {
      const run = await addRun(id, slotMs)
      runs.push(run)
      await addFill(id, { fill_id: BigInt(n + 1), at: at(slotMs + 200), execution_id: run })
      await rows(
        `insert into strategy_equity (strategy_id, mode, at, equity_usd) values ($1, 'paper', $2, $3)`,
        id,
        at(slotMs),
        String(1_000 - n),
      )
    }
    const put: { name: string; text: string }[] = []
    const reports = createStrategyReports({
      db: core.db,
      clock,
      log: silentLog,
      candles: createCandleStore({
        db: core.db,
        clock,
        log: silentLog,
        venue: {
          candlePage: noVenue,
          book: async () => ({ timeMs: nowMs }) as never,
        },
        weightPerMinute: 0,
        isOnDuty: () => true,
      }),
      funding: createFundingStore({ db: core.db, venue: { fundingPage: noVenue } }),
      backtests: createBacktests(),
      dayEnds: pastDayEnds,
      files: {
        async put(_user, name, contentType, bytes) {
          put.push({ name, text: Buffer.from(bytes).toString('latin1') })
          return { id: uuidv7(clock.now(), systemRandom), sha256: '', name, contentType, size: bytes.length }
        },
      },
    })
    const run = {
      id: runs[1]!,
      strategy_id: id,
      user_id: user,
      version: 1,
      execution_type: 'scheduled' as const,
      mode: 'paper' as const,
    }
    const made = await reports.make({ run, terms: terms(id), text: 'entry: buy 0.01 ETH' })
    assert.deepEqual(
      made.map(({ name }) => name),
      ['report.md', 'equity.png', 'trades.csv'],
    )
    const [report, picture, csv] = put
    assert.match(report!.text, /^# A schedule\nRun 2 of version 1, on paper, ended at /)
    assert.match(report!.text, /^\| ETH \| long \| 0\.02 \| 2003 \| 2000 \|/m)
    assert.ok(picture!.text.startsWith('\x89PNG'))
    assert.equal(csv!.text.trimEnd().split('\r\n').length, 3)
    const drift = await eventually(async () => {
      const row = await findSchedule(core.db, user, id)
      return strategyView(row!, { sizeDecimals: { ETH: 4 } }).drift ?? undefined
    }, 'the comparison')
    // The backtest buys at 2,001: the price of 2,000 and its slippage.
    assert.deepEqual(
      [drift.entries, drift.entries_only_here, drift.entries_only_in_backtest, drift.entry_price_bps],
      [2, 0, 0, '9.99'],
    )
    await rows(
      `update strategy_account set drift = jsonb_set(drift, '{entries}', '9') where strategy_id = $1`,
      id,
    )
    const again = await reports.make({ run, terms: terms(id), text: 'entry: buy 0.01 ETH' })
    assert.equal(again[0]?.name, 'report.md')
    const { text } = put.at(-3)!
    assert.match(text, /^\| Entries in both \| 9 \| 9 \|$/m)
    assert.match(
      text,
      /^From .* On average the price of an entry was 9\.99 hundredths of a percent worse\.$/m,
    )
  })

  test('decisions are kept for a quarter of a year, fills and the worth of accounts for a year', async () => {
    const id = await addStrategy()
    await addAccount(id)
    const ages = { new: 1, quarter: 91, year: 366 }
    for (const [n, days] of Object.values(ages).entries()) {
      const ms = nowMs - days * dayMs
      const run = await addRun(id, ms)
      await addFill(id, { fill_id: BigInt(n + 1), at: at(ms), execution_id: run })
      await rows(
        `insert into strategy_equity (strategy_id, mode, at, equity_usd) values ($1, 'paper', $2, 1000)`,
        id,
        at(ms),
      )
    }
    for (const job of strategyRetentionJobs(core.db, clock)) while (await job.runBatch());
    const countOf = async (table: string) =>
      (await rows<{ n: number }>(`select count(*)::integer as n from ${table} where strategy_id = $1`, id))[0]
        ?.n
    assert.deepEqual(
      [await countOf('strategy_decision'), await countOf('strategy_fill'), await countOf('strategy_equity')],
      [1, 2, 2],
    )
  })

  test('a version is kept while an account follows it, though its runs are deleted', async () => {
    const [open, other] = [await addStrategy(), await addStrategy()]
    await addAccount(open)
    for (const id of [open, other]) {
      await addRun(id, nowMs - 366 * dayMs)
      await addVersion(id, { version: 22 })
    }
    for (const job of strategyRetentionJobs(core.db, clock)) while (await job.runBatch());
    const versionsOf = async (id: string) => {
      const text = 'select version from strategy_version where strategy_id = $1 order by version'
      return (await rows<{ version: number }>(text, id)).map(({ version }) => version)
    }
    assert.deepEqual([await versionsOf(open), await versionsOf(other)], [[1, 22], [22]])
    const [first] = await rows<NewVersion>('select * from strategy_version where strategy_id = $1', open)
    await core.transactions.run((tx) => insertVersion(tx, { ...first!, version: 21 }))
    assert.deepEqual(await versionsOf(open), [1, 21, 22])
  })

  test('what paper orders have taken of a book is kept for a day', async () => {
    for (const [market, days] of Object.entries({ ETH: 0.5, BTC: 1.5 }))
      await rows(
        `insert into paper_levels (user_id, market, block_ms, bids, asks) values ($1, $2, $3, '{}', '{}')`,
        user,
        market,
        nowMs - days * dayMs,
      )
    for (const job of deletionJobs({ pool: core.db, clock }, [paperLevelsDeletion]))
      while (await job.runBatch());
    const left = await rows<{ market: string }>('select market from paper_levels where user_id = $1', user)
    assert.deepEqual(
      left.map(({ market }) => market),
      ['ETH'],
    )
  })
})
