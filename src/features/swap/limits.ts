/** Bounds of swaps; validation, capabilities and tests read them here. */

export const swapLimits = {
  minSwapUsd: '0.5',
  slippageBps: { default: 100, minimum: 1, maximum: 1_000 },
  /** Of the value at trusted prices. */
  priceImpactBps: { default: 2_500, minimum: 1, maximum: 10_000 },
  deadlineSeconds: { default: 300, minimum: 30, maximum: 3_600 },
} as const

export const swapFacts = {
  gasless: true,
  dry_run: true,
  bound_quotes: true,
  order_types: ['swap', 'limit', 'stop_loss', 'take_profit', 'trailing'],
  min_swap_usd: swapLimits.minSwapUsd,
  default_slippage_bps: swapLimits.slippageBps.default,
  security_enforced: true,
}

/** Fees may take so much of the value, up to half of it. */
export const exemptLossMicros = 5_000_000n
/** The part of the value that is left, whatever loss was accepted. */
export const remainingBpsMin = 1_000n

/** How long a bound quote may be executed. */
export const quoteMs = 60_000
/** Beyond it the oldest quotes of a user are deleted. */
export const quotesPerUserMax = 50
/** A signature that would be void sooner is not made: a block may not include it in time, and its gas is paid anyway. */
export const signatureMsMin = 10_000
/** A signature on Solana has no deadline: it can land in the 150 blocks after the one that it names. */
const svmSignatureSeconds = 90
/** The provider's own limit is later than every signature that the quote can lead to. */
export const routeMarginSeconds = quoteMs / 1_000 + svmSignatureSeconds + 30

/** How long other providers may take once one has a route. */
export const otherProviderMs = 1_500
