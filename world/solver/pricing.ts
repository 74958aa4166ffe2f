import { type Currency, requireChain } from './chains.ts'
import { parseUsd, unitsCoveringUsd, unitsOfUsd, usdOfUnits } from './money.ts'

/** What the solver earns of each payment, in hundredths of a percent. */
export const solverServiceBps = 5n
/** The dollars of a payment that move its price by one hundredth of a percent. */
const usdPerImpactBps = 5_000n * 10n ** 18n
/** Quotes with more impact are rejected. */
export const impactBpsMax = 1_500n
const fullBps = 10_000n

export type PricedCurrency = { currency: Currency; priceUsd: bigint }

export type Terms = {
  inUnits: bigint
  outUnits: bigint
  gasUsd: bigint
  serviceUsd: bigint
  impactBps: bigint
}

const impactBpsOf = (usd: bigint): bigint => usd / usdPerImpactBps

/** What the solver pays for a deposit at the prices of this moment. */
export const termsOfInput = (
  input: PricedCurrency,
  output: PricedCurrency,
  inUnits: bigint,
  serviceBps = solverServiceBps,
): Terms => {
  const inUsd = usdOfUnits(inUnits, input.currency, input.priceUsd)
  const gasUsd = parseUsd(requireChain(output.currency.chainId).gasUsd)
  const impactBps = impactBpsOf(inUsd)
  const serviceUsd = (inUsd * serviceBps) / fullBps
  const outUsd = inUsd - serviceUsd - (inUsd * impactBps) / fullBps - gasUsd
  const outUnits = outUsd > 0n ? unitsOfUsd(outUsd, output.currency, output.priceUsd) : 0n
  return { inUnits, outUnits, gasUsd, serviceUsd, impactBps }
}

/** The deposit that suffices for this payment. */
export const termsOfOutput = (input: PricedCurrency, output: PricedCurrency, outUnits: bigint): Terms => {
  const gasUsd = parseUsd(requireChain(output.currency.chainId).gasUsd)
  const outUsd = usdOfUnits(outUnits, output.currency, output.priceUsd) + gasUsd
  const impactBps = impactBpsOf(outUsd)
  const serviceBps = solverServiceBps
  const remainingBps = fullBps - serviceBps - impactBps
  if (remainingBps <= 0n) return { inUnits: 0n, outUnits, gasUsd, serviceUsd: 0n, impactBps }
  const inUsd = (outUsd * fullBps + remainingBps - 1n) / remainingBps
  const inUnits = unitsCoveringUsd(inUsd, input.currency, input.priceUsd)
  return { inUnits, outUnits, gasUsd, serviceUsd: (inUsd * serviceBps) / fullBps, impactBps }
}

export const minimumAfter = (units: bigint, slippageBps: number): bigint =>
  (units * (fullBps - BigInt(slippageBps))) / fullBps
