import { rounded } from '#kernel/money/figure-format.ts'
import type { ToolCall } from '#kernel/wire/chat-answerer.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { priceOnTick } from '#market/tick-size.ts'
import type { Side } from '#market/trading-rules.ts'
import type { Claim } from './claim.ts'
import { type Facts, rowPointer, say } from './facts.ts'
import type { Analysis } from './market-analysis.ts'

/**
 * The trade that is signalled now by the trading rule for the market's regime; a model has no part in this proposal.
 */

export type Proposal = {
  side: Side
  entry: Claim
  stop: Claim
  target: Claim
  /** The size of the position in dollars; undefined if the account at the venue is empty or unknown. */
  notional: Claim | undefined
}

/** The share of the account that a position may lose at its stop. */
const riskShare = '0.01'
const proposalId = 'proposal'

export function proposalOf({ facts, main, rule }: Analysis): Proposal | undefined {
  const side = rule?.signal?.value
  const source = main && facts.at(main.call)
  if ((side !== 'long' && side !== 'short') || source === undefined || !main?.close) return undefined
  const exit = (field: 'stop' | 'target') =>
    facts.derived(`${field} of a ${side} by ATR 14, ${main.timeframe}`, 'price', {
      formula: 'atr_exit',
      inputs: [source, `=${side}`, `=${field}`],
    })
  const [stop, target] = [exit('stop'), exit('target')]
  if (!stop || !target) return undefined
  const account = facts.measured(
    'worth of your account at the venue',
    'usd',
    facts.at('positions', '/account/account_value_usd'),
  )
  const notional = facts.derived(
    'worth of a position that loses a hundredth of the account at its stop',
    'usd',
    {
      formula: 'risk_size',
      inputs: [account, main.close, stop, `=${riskShare}`],
    },
  )
  return { side, entry: main.close, stop, target, notional }
}

export const proposalText = ({ rule }: Analysis, proposal: Proposal | undefined): string | undefined => {
  if (!rule) return undefined
  if (!proposal) return 'The rule signals nothing now.'
  const { side, stop, target } = proposal
  return say`The rule signals a ${side} now, with a stop at ${stop} and a target at ${target}.`
}

function marketOf(facts: Facts): { decimalsMax: number; orderUsdMin: number } | undefined {
  const row = rowPointer(facts.output('perp'), { list: 'markets', field: 'symbol', value: facts.asset })
  const output = facts.output('perp')
  const markets = isRecord(output) ? output.markets : undefined
  const market: unknown = Array.isArray(markets) && row ? markets[Number(row.split('/').at(-1))] : undefined
  if (!isRecord(market)) return undefined
  return { decimalsMax: Number(market.price_decimals_max), orderUsdMin: Number(market.min_order_usd) }
}

export type Advice = { call: ToolCall } | { reason: string } | undefined

/** Recommends a trade only if the rule signals one and its backtest shows an edge. */
export function recommendationOf(analysis: Analysis, proposal: Proposal | undefined): Advice {
  const { facts, rule } = analysis
  if (!rule || !proposal) return undefined
  if (rule.verdict?.value !== 'positive')
    return { reason: 'Nothing is recommended: the test of the rule shows no edge.' }
  const market = marketOf(facts)
  const { side, stop, target, notional } = proposal
  if (!market || !notional || Number(notional.value) < market.orderUsdMin)
    return { reason: 'Nothing is recommended: your account at the venue is too small or unknown.' }
  const tp_price = priceOnTick(Number(target.value), market.decimalsMax)
  const sl_price = priceOnTick(Number(stop.value), market.decimalsMax)
  if (tp_price === undefined || sl_price === undefined) return undefined
  const input = {
    asset: facts.asset,
    side,
    notional_usd: rounded(notional.value, 2),
    leverage: 1,
    tp_price,
    sl_price,
  }
  return { call: { id: proposalId, name: 'perp_open', input } }
}
