import assert from 'node:assert/strict'
import type { CandleStore } from '#engines/candles/candle-store.ts'
import { candleSpanMs, candleSpans } from '#market/candle.ts'
import { type CandleWindow, latestWindow } from '#market/strategies/candle-columns.ts'
import { type DecisionInputs, replayDecision, type WindowBounds } from '#market/strategies/decision-record.ts'
import { type Queryable, query } from '#store/query.ts'

/** Makes every stored decision of a strategy again from its record and the stored candles, and compares the bytes. */

type Candles = Pick<CandleStore, 'columns'>
type Row = { execution_id: string; seq: number; decision: string; inputs_sha256: string; inputs: object }

/** Returns how many decisions were compared. */
export async function replayDecisions(db: Queryable, candles: Candles, strategyId: string): Promise<number> {
  const rows = await query<Row>(
    db,
    `select execution_id, seq, decision, inputs_sha256, inputs from strategy_decision
     where strategy_id = $1 order by execution_id, seq`,
    [strategyId],
  )
  for (const row of rows) {
    const inputs = row.inputs as DecisionInputs
    const replayed = replayDecision(inputs, await windowsOf(candles, inputs))
    const name = `decision ${row.seq} of ${row.execution_id}`
    assert.equal(replayed.text, row.decision, name)
    assert.equal(replayed.inputsSha256, row.inputs_sha256, name)
  }
  return rows.length
}

async function windowsOf(candles: Candles, { windows }: DecisionInputs) {
  if (!windows) return undefined
  const read = Object.entries(windows).map(
    async ([market, bounds]) => [market, await windowOf(candles, market, bounds)] as const,
  )
  return Object.fromEntries(await Promise.all(read))
}

async function windowOf(candles: Candles, market: string, bounds: WindowBounds): Promise<CandleWindow> {
  const { span_ms, end_ms, candles: count } = bounds
  const span = candleSpans.find((each) => candleSpanMs[each] === span_ms)
  assert.ok(span, `no candles have ${span_ms} ms`)
  const columns = await candles.columns({ market, span }, { fromMs: end_ms - count * span_ms, toMs: end_ms })
  const window = latestWindow(columns, end_ms)
  assert.ok(window?.endMs === end_ms && window.close.length === count, `the window of ${market} is gone`)
  return window
}
