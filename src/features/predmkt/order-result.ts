import { fromUnits, mulDiv, usdcDecimals } from '#kernel/money/money.ts'
import type { OutcomeTrade, SettlementState } from '#kernel/money/prediction-views.ts'
import type { JsonObject } from '#kernel/task/task.ts'
import type { PredictionOrderRow, PredictionOrderStatus } from '#store/tables/predmkt.ts'
import type { PredmktDeps } from './deps.ts'
import type { MeasuredTrade } from './measured-trades.ts'
import type { Finding } from './order-finding.ts'
import { dollar } from './order-request.ts'
import type { OrderTask } from './order-task.ts'
import { namedTrade } from './store/fill-store.ts'

/** What became of an order, in shares and dollars. Only confirmed trades are money. */

type Fees = Pick<PredmktDeps, 'takerFeeUnits'>
type Matched = { trades: readonly MeasuredTrade[]; row: PredictionOrderRow }

const usd = (units: bigint): string => fromUnits(units, usdcDecimals)
export type FillSummary = {
  matchedUnits: bigint
  settledUnits: bigint
  failedUnits: bigint
  matchedCash: bigint
  cashUnits: bigint
  feeUnits: bigint
  /** What leaves the wallet: dollars of a purchase, shares of a sale. */
  spentUnits: bigint
}

export function fillSummary({ takerFeeUnits }: Fees, { trades, row }: Matched): FillSummary {
  const all = {
    matchedUnits: 0n,
    settledUnits: 0n,
    failedUnits: 0n,
    matchedCash: 0n,
    cashUnits: 0n,
    feeUnits: 0n,
  }
  for (const trade of trades) {
    const { feeUnits, cashUnits } = namedTrade(trade, row, takerFeeUnits)
    if (trade.settlement === 'failed') {
      all.failedUnits += trade.sizeUnits
      continue
    }
    all.matchedUnits += trade.sizeUnits
    all.matchedCash += cashUnits
    if (trade.settlement !== 'confirmed') continue
    all.settledUnits += trade.sizeUnits
    all.cashUnits += cashUnits
    all.feeUnits += feeUnits
  }
  return { ...all, spentUnits: row.side === 'buy' ? all.cashUnits + all.feeUnits : all.settledUnits }
}

/** So many trades of an order are named at most; its sums count all. */
export const shownMax = 200

export const fillViews = ({ takerFeeUnits }: Fees, { trades, row }: Matched): JsonObject[] =>
  trades
    .filter(({ settlement }) => settlement !== 'failed')
    .slice(0, shownMax)
    .map((trade) => ({
      venue: trade.venue,
      order_id: trade.orderId,
      fill_id: trade.tradeId,
      side: trade.side,
      price: usd(trade.priceMicros),
      size: usd(trade.sizeUnits),
      fee: usd(namedTrade(trade, row, takerFeeUnits).feeUnits),
      fee_token: 'pUSD',
      confirmed: trade.settlement === 'confirmed',
      at: trade.matchedAt.toISOString(),
    }))

/** From the end to the beginning of a settlement. */
const order: readonly SettlementState[] = [
  'failed',
  'confirmed',
  'mined',
  'matched',
  'matched_not_broadcasted',
  'retrying',
]
const settlementOf = (trades: readonly OutcomeTrade[]): SettlementState | null =>
  trades.map(({ settlement }) => settlement).sort((a, b) => order.indexOf(b) - order.indexOf(a))[0] ?? null

const shownStatus: Readonly<Record<PredictionOrderStatus, string>> = {
  signed: 'live',
  live: 'live',
  delayed: 'delayed',
  matched: 'matched',
  cancelled: 'cancelled',
  expired: 'expired',
  unmatched: 'unmatched',
  rejected: 'unmatched',
  resolved: 'cancelled',
}

type Ended = { found: Finding; row: PredictionOrderRow; status: PredictionOrderStatus; summary: FillSummary }

export function orderResult(
  _deps: Fees,
  { data }: OrderTask,
  { found, row, status, summary }: Ended,
): JsonObject {
  const { trades } = found
  const { matchedUnits, settledUnits, matchedCash, cashUnits, feeUnits } = summary
  const legs = new Set((data.exits ?? []).map(({ leg }) => leg))
  return {
    venue: row.venue,
    market_id: row.market_id,
    condition_id: row.market_id,
    outcome_id: row.outcome_id,
    protocol: row.protocol,
    side: row.side === 'buy' ? 'BUY' : 'SELL',
    order_id: row.order_id,
    order_status: shownStatus[status],
    settlement: settlementOf(trades),
    trade_ids: [...new Set(trades.map(({ tradeId }) => tradeId))].slice(0, shownMax),
    filled_shares: usd(matchedUnits),
    settled_shares: usd(settledUnits),
    avg_price: matchedUnits === 0n ? null : usd(mulDiv(matchedCash, dollar, matchedUnits)),
    fee_usd: usd(feeUnits),
    total_usd: usd(row.side === 'buy' ? cashUnits + feeUnits : cashUnits - feeUnits),
    making_amount: row.making,
    taking_amount: row.taking,
    tx_hashes: [...new Set(trades.flatMap(({ txHash }) => txHash ?? []))].slice(0, shownMax),
    take_profit_state: legs.has('tp') ? 'waiting' : 'none',
    take_profit_order_id: null,
    take_profit_error: null,
    stop_loss_state: legs.has('sl') ? 'waiting' : 'none',
  }
}
