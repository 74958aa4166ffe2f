import { requireCurrency } from './chains.ts'
import type { Inventory } from './inventory.ts'
import { parseUsd, usdOfUnits } from './money.ts'
import type { WithDeposit } from './payments.ts'
import type { Prices } from './prices.ts'
import { termsOfInput } from './pricing.ts'
import type { RealismControl } from './realism.ts'

export type FillAmountDeps = {
  inventory: Inventory
  prices: Prices
  realism: RealismControl
  serviceBps?: () => bigint
  nowMs: () => number
}

/** The units of the fill, or the reason against it. */
export const fillAmount = async (
  { inventory, prices, realism, serviceBps, nowMs }: FillAmountDeps,
  request: WithDeposit,
): Promise<bigint | string> => {
  const { deposit, quotedIn, quotedOut, minimumOut } = request
  if (deposit.currency !== request.originCurrency) return 'ORIGIN_CURRENCY_MISMATCH'
  if (nowMs() > request.expiresMs) return 'TTL_EXPIRED'
  const [units, inUnits] = [BigInt(deposit.units), BigInt(quotedIn)]
  if (units < inUnits) return 'DEPOSITED_AMOUNT_TOO_LOW_TO_FILL'
  const input = requireCurrency(request.originChainId, request.originCurrency)
  const output = requireCurrency(request.destinationChainId, request.destinationCurrency)
  const [inPrice, outPrice] = [await prices.priceOf(input), await prices.priceOf(output)]
  if (inPrice === undefined || outPrice === undefined) return 'NO_QUOTES'
  const capacityUsd = parseUsd(realism.current().capacityUsd.toFixed(6))
  if (usdOfUnits(units, input, inPrice) > capacityUsd) return 'SOLVER_CAPACITY_EXCEEDED'
  const { outUnits: current } = termsOfInput(
    { currency: input, priceUsd: inPrice },
    { currency: output, priceUsd: outPrice },
    units,
    serviceBps?.(),
  )
  // A larger deposit is filled in proportion.
  const quoted = (BigInt(quotedOut) * units) / inUnits
  const minimum = (BigInt(minimumOut) * units) / inUnits
  // One hundredth of a percent covers the rounding of an exact output.
  if (current < minimum - minimum / 10_000n) return 'SLIPPAGE'
  const chosen = current < quoted ? current : quoted
  const paid = chosen < minimum ? minimum : chosen
  return (await inventory.available(output)) < paid ? 'SOLVER_BALANCE_TOO_LOW' : paid
}
