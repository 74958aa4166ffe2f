import type { TokenAt } from '#kernel/contract/token-ref.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { printed, rounded } from '#kernel/money/figure-format.ts'
import { fromUnits, fullBps, usdDecimals } from '#kernel/money/money.ts'
import { actionTerms } from '#kernel/task/approval.ts'
import type { ActionTerms, PlannedAction } from '#kernel/task/policy-action.ts'
import { swapLimits } from './limits.ts'
import type { SwapTerms } from './terms.ts'

/** The symbol of a token that nobody has reviewed can imitate any other, so its address is named first. */
const nameOf = ({ chain, token, isNative }: TokenAt): string =>
  isNative || chain.tokens.some(({ address }) => sameAddress(chain, address, token.address))
    ? token.symbol
    : `${token.address} (unreviewed, calls itself ${token.symbol})`

/** What the route of the moment delivers, and what both sides are worth; null where no price is known. */
type Quoted = { amountOutUnits: bigint; outMicros: bigint | null }

const hundredth = (bps: number): string => fromUnits(BigInt(bps), 2)

function quotedText(
  { destination, valueInMicros }: SwapTerms,
  { amountOutUnits, outMicros }: Quoted,
): string {
  const { symbol, decimals } = destination.token
  const amount = `Quoted now: ${printed(fromUnits(amountOutUnits, decimals), 'amount')} ${symbol}`
  if (outMicros === null) return amount
  const worth = `${amount}, worth ${rounded(fromUnits(outMicros, usdDecimals), 2)} USD`
  if (valueInMicros === null || valueInMicros === 0n) return worth
  const lostBps = ((valueInMicros - outMicros) * fullBps) / valueInMicros
  return lostBps <= 0n ? worth : `${worth}, ${fromUnits(lostBps, 2)} % less than what leaves`
}

/** Returns what a person reads before approving the swap. The accepted loss comes first, because long texts are cut. */
export function termsOfSwap(terms: SwapTerms, amountInUnits: bigint, quoted: Quoted): ActionTerms {
  const { origin, destination, maxImpactBps, slippageBps } = terms
  const amount = fromUnits(amountInUnits, origin.token.decimals)
  const sold = `${amount} ${nameOf(origin)}`
  const [from, to] = [origin.chain.displayName, destination.chain.displayName]
  const route = from === to ? `on ${from}` : `from ${from} to ${to}`
  const swap = `wap ${sold} into ${nameOf(destination)} ${route}`
  const sentence =
    maxImpactBps > swapLimits.priceImpactBps.default
      ? `Accept a loss of up to ${hundredth(maxImpactBps)} % and s${swap}`
      : `S${swap}`
  return actionTerms(sentence, {
    chain: from,
    token: nameOf(origin),
    amount,
    asset: nameOf(destination),
    cost: `${quotedText(terms, quoted)}, fees included. It is quoted anew when you approve: it does not run at a loss above ${hundredth(maxImpactBps)} %, and at most ${hundredth(slippageBps)} % less than the new quote arrives`,
  })
}

type Sold = Quoted & { amountInUnits: bigint; target: string; usdMicros: bigint }

/** The action on the chain that the value leaves. */
export function swapAction(
  terms: SwapTerms,
  { amountInUnits, target, usdMicros, ...quoted }: Sold,
): PlannedAction {
  const { userId, origin, destination, maxImpactBps } = terms
  const isDirect = origin.chain.id === destination.chain.id
  return {
    userId,
    operation: 'swap',
    chainId: origin.chain.id,
    tokens: isDirect ? [origin.token.address, destination.token.address] : [origin.token.address],
    recipients: [target],
    usdMicros,
    exit: false,
    terms: termsOfSwap(terms, amountInUnits, quoted),
    // A loss above the default needs the approval of a person if an agent asks for the swap.
    ...(maxImpactBps > swapLimits.priceImpactBps.default && { acceptedLossBps: maxImpactBps }),
  }
}

type ArrivalAction = { userId: string; chainId: string; token: string; recipient: string }

/**
 * The action on the destination chain, where the output arrives. Its value is 0, because the value counts on the origin
 * chain.
 */
export const arrivalAction = ({ userId, chainId, token, recipient }: ArrivalAction): PlannedAction => ({
  userId,
  operation: 'swap',
  chainId,
  tokens: [token],
  recipients: [recipient],
  usdMicros: 0n,
  exit: false,
})
