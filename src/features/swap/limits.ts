/** Bounds of swaps; validation, capabilities and tests read them here. */

export const swapLimits = {
  minSwapUsd: '0.5',
  slippageBps: { default: 100, minimum: 1, maximum: 1_000 },
  /** Of the value at trusted prices. */
  priceImpactBps: { default: 2_500, minimum: 1, maximum: 10_000 },
  deadlineSeconds: { default: 300, minimum: 30, maximum: 3_600 },
} as const

/** So much of the value may always be lost, to fees of small amounts. */
export const exemptLossMicros = 5_000_000n

/** How long a bound quote may be executed. */
export const quoteMs = 60_000
/** Beyond it the oldest quotes of a user are deleted. */
export const quotesPerUserMax = 50
/** The provider's own limit is later than every signature that the quote can lead to. */
export const routeMarginSeconds = 120

/** How long other providers may take once one has a route. */
export const otherProviderMs = 1_500
