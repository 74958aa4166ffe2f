import type { FeeView, QuoteView } from '#features/swap/contract.ts'
import type { Token } from '#kernel/money/chains.ts'
import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import type { ProposedRoute } from '#kernel/money/swap-provider.ts'

/** A fee of a quote, in whole units; the values of all fees add up to `fees_usd` exactly. */

export type QuotedFee = {
  type: FeeView['type']
  chainId: string
  token: string
  amountUnits: bigint
  micros: bigint | null
  paidBy: FeeView['paid_by']
}
type Values = { inMicros: bigint | null; outMicros: bigint | null }
type Quoted = {
  quoteId: string | null
  expiresAt: Date
  fees: readonly QuotedFee[]
  values: Values
  tokens: Record<'in' | 'out', Pick<Token, 'symbol' | 'decimals'>>
}

const usdOf = (micros: bigint | null): string | null =>
  micros === null ? null : fromUnits(micros, usdDecimals)

const feeView = ({ type, chainId, token, amountUnits, micros, paidBy }: QuotedFee): FeeView => ({
  type,
  chain_id: chainId,
  token_address: token,
  amount: String(amountUnits),
  amount_usd: usdOf(micros),
  paid_by: paidBy,
})

/** Returns the value of the fees that the user pays, or null if one of them has no known value. */
export function feesMicros(fees: readonly QuotedFee[]): bigint | null {
  let sum = 0n
  for (const { micros, paidBy } of fees) {
    if (paidBy !== 'user') continue
    if (micros === null) return null
    sum += micros
  }
  return sum
}

export const quoteView = (
  route: ProposedRoute,
  { quoteId, expiresAt, fees, values, tokens }: Quoted,
): QuoteView => ({
  quote_id: quoteId,
  provider: route.provider,
  symbol_in: tokens.in.symbol,
  symbol_out: tokens.out.symbol,
  decimals_in: tokens.in.decimals,
  decimals_out: tokens.out.decimals,
  amount_in: String(route.amountInUnits),
  amount_in_usd: usdOf(values.inMicros),
  amount_out: String(route.amountOutUnits),
  amount_out_usd: usdOf(values.outMicros),
  amount_out_min: String(route.amountOutMinUnits),
  price_impact_bps: route.priceImpactBps,
  fees: fees.map(feeView),
  fees_usd: usdOf(feesMicros(fees)),
  route: route.legs.map(({ tool, origin, destination, amountInUnits, amountOutUnits }) => ({
    tool,
    chain_id: origin.chainId,
    token_in: origin.token,
    chain_id_out: destination.chainId,
    token_out: destination.token,
    amount_in: String(amountInUnits),
    amount_out: String(amountOutUnits),
  })),
  eta_seconds: route.etaSeconds,
  expires_at: expiresAt.toISOString(),
})
