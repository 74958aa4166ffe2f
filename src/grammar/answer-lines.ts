import * as rows from './answer-row-filters.ts'
import type { Slots } from './clause-reader.ts'

/**
 * Templates of answers. `{path|format}` is a figure of the row or, with a leading slash, of the whole output;
 * `{formula(a,b)|format}` is computed from two figures; a part in brackets is left out if a figure of it is
 * unknown. The texts between have no digit. A line without a step is about the first step of the plan.
 */
export type Line =
  | { step?: string; text: string; where?: (slots: Slots) => boolean }
  /**
   * In such a line `{sum(field)|format}` adds a field up over the picked rows, as `first`, `last`, `max` and `min` take
   * one of them; with a single row the line is left out.
   */
  | {
      step?: string
      total: string
      text: string
      pick: rows.Picked
      where?: (slots: Slots) => boolean
      /** True if the line is also written for a single row. */
      isOfOne?: boolean
      none?: string
    }
  | {
      step?: string
      rows: string
      text: string
      where?: (slots: Slots) => boolean
      none?: string
      /** True if only the first row is shown, and the number of the other rows is not mentioned. */
      isNewestAlone?: boolean
      /** True if the number of the rows that are left out is not mentioned, because another line has their sum. */
      hidesRest?: boolean
      pick?: rows.Picked
      sort?: (rows: readonly rows.Row[], slots: Slots) => rows.Row[]
      max?: number
    }

export const perpPrice: Line = {
  step: 'perp',
  rows: '/markets',
  pick: rows.named,
  text: '{symbol|text}: {mark_price|price}[, {change(mark_price,prev_day_price)|fraction} against the day before][, funding {funding_rate|hourly}].',
  none: 'The venue lists no such perpetual market.',
}
export const spotPrice: Line = {
  step: 'spot',
  rows: '/markets',
  pick: rows.named,
  text: '{base|text}: {price|price} at the spot venue[, volume of the day {volume_24h_usd|usd}].',
  none: 'The spot venue lists no such market.',
}
const predictionMarket = {
  rows: '/markets',
  max: 10,
  pick: rows.aboutQuestion,
  text: '"{question|text}": {outcomes/0/outcome|text} {outcomes/0/price|price}, {outcomes/1/outcome|text} {outcomes/1/price|price}[, volume of the day {volume_24h_usd|usd}].',
}
export const predictionMarkets: readonly Line[] = [
  { ...predictionMarket, step: 'found', pick: () => true },
  {
    step: 'again',
    ...predictionMarket,
    none: 'The venue lists no open market with these words: "what can i bet on" lists those that are traded most.',
  },
]
export const heldPrice: Line = {
  step: 'holdings',
  rows: '/holdings',
  pick: rows.held,
  max: 1,
  text: '{symbol|text}: {price_usd|price}[, by {price_source|text}].',
  none: 'There is no price of it here: no venue lists it, and your wallets do not hold it.',
}
export const position: Line = {
  step: 'orders',
  rows: '/positions',
  pick: rows.named,
  text: '{asset|text} {side|text} {size|size}, entry {entry_price|price}, mark {mark_price|price}, leverage {leverage|count}, profit {unrealized_pnl_usd|usd}, funding paid {funding_paid_usd|usd}, {liquidation_price|level}.',
  none: 'There is no open position.',
}
/** Says which time the rows above are of, if the user said one. */
export const windowSaid = (step: string): Line => ({
  step,
  where: ({ period }) => period !== undefined && period !== 'all',
  text: 'The time asked about: {said(period)|text}.',
})
const ofFills = (step: string) => ({ step, total: '/fills', isOfOne: true }) as const
export const realized = (step: string, place: string): Line => ({
  ...ofFills(step),
  pick: rows.filled,
  text: `Realised at ${place} over {said(period)|text}: {sum(realized_pnl_net_usd)|usd}, after fees, from {first(at)|time} back to {last(at)|time}.`,
  none: `No fill at ${place} in that time.`,
})
export const fees = (step: string, place: string): Line => ({
  ...ofFills(step),
  pick: rows.paidInDollars,
  text: `Fees at ${place}[ over {said(period)|text}]: {sum(fee)|amount} USDC, from {first(at)|time} back to {last(at)|time}.`,
  none: `No fee in USDC at ${place} in that time.`,
})
export const order = (step: 'orders' | 'spot'): Line => ({
  step,
  rows: '/orders',
  pick: rows.resting,
  text: '{asset|text} {side|text} {size|size}[ at {limit_price|price}][, trigger {trigger_price|price}], order {order_id|text}.',
  none:
    step === 'orders'
      ? 'No such order[ of {said(asset)|text}] waits at perps.'
      : 'No such order[ of {said(asset)|text}] waits at the spot venue.',
})
export const holding: Line = {
  step: 'holdings',
  rows: '/holdings',
  pick: rows.held,
  text: '{balance|amount} {symbol|text} on {chain_name|text}[, worth {value_usd|usd}].',
  none: 'Your wallets hold nothing of it.',
}
export const limitOrder =
  'Limit order: {units(amount,chain_id_in,token_in)|amount} for {token(chain_id_out,token_out)|text} at {price_usd_trigger|price}: {status|text} ({order_id|text}).'
export const task = (step: string): Line => ({
  step,
  text: 'Task {/task_id|text} is {/status|text}: {/message|text}',
})
export const taskRow: Line = {
  step: 'tasks',
  rows: '/items',
  pick: rows.asked,
  text: '{kind|kind}, {status|text}: {message|text} ({created_at|time}, task {task_id|text})',
  none: 'There is no task.',
}
export const quote: Line = {
  step: 'preview',
  text: 'You would pay {units(/quote/amount_in,chain_id_in,token_in)|amount} and get about {units(/quote/amount_out,chain_id_out,token_out)|amount}, at least {units(/quote/amount_out_min,chain_id_out,token_out)|amount}; price impact {/quote/price_impact_bps|bps}, by {/quote/provider|text}.',
}
export const vaultPosition: Line = {
  step: 'earn',
  rows: '/positions',
  pick: rows.active,
  text: '{current_value_usdc|amount} USDC in the vault on {vault_chain_name|text}, {amount_deposited_usdc|amount} deposited[, earned {unrealized_yield_usdc|amount} USDC][, now at {current_apy|fraction} a year].',
  none: 'There is nothing in the vault.',
}
export const limits: Line = {
  step: 'policy',
  text: 'Each transaction {/per_transaction_usd|usd}, each day {/per_day_usd|usd}; spent in the last day {/spent_24h_usd|usd}, left {/remaining_24h_usd|usd}[; a person approves above {/approval_above_usd|usd}].',
}
export const fill = (step: string): Line => ({
  step,
  rows: '/fills',
  pick: rows.filled,
  text: '{asset|text} {side|text} {size|size} at {price|price}, fee {fee|amount} {fee_token|text}[, realised {realized_pnl_net_usd|usd}] ({at|time})',
  none: 'There is no fill.',
})
export const pack: Line = {
  step: 'packs',
  rows: '/packs',
  text: '{price_usd|usd} buy {credits|count} credits.',
}
