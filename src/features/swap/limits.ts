/** Bounds of swaps; validation, capabilities and tests read them here. */

export const swapLimits = {
  minSwapUsd: '0.5',
  slippageBps: { default: 100, minimum: 1, maximum: 1_000 },
  deadlineSeconds: { default: 300, minimum: 30, maximum: 3_600 },
} as const

/** How long a bound quote may be executed. */
export const quoteMs = 60_000
/** Beyond it the oldest quotes of a user are deleted. */
export const quotesPerUserMax = 50
/** The provider's own limit is later than every signature that the quote can lead to. */
export const routeMarginSeconds = 120

/** How long other providers may take once one has a route. */
export const otherProviderMs = 1_500
