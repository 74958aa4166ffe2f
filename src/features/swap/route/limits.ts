export const swapLimits = {
  minSwapUsd: '0.5',
  slippageBps: { default: 100, minimum: 1, maximum: 1_000 },
  /** The accepted loss, in basis points of the value at trusted prices. */
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

/** Fees may take this much of a small swap whatever loss it accepts, but never more than half of its value. */
export const exemptLossMicros = 5_000_000n
/** The share of a swap's value that must be left after any loss, in basis points. */
export const remainingBpsMin = 1_000n

/** How long a bound quote may be executed. */
export const quoteMs = 60_000
/** Saving a quote deletes the user's oldest ones beyond this number. */
export const quotesPerUserMax = 50
/** No signature expires sooner than this: a block might not include it in time, and its gas is still paid. */
export const signatureMsMin = 10_000
/** A signature on Solana has no deadline; it can land in the 150 blocks after the one that it names. */
const svmSignatureSeconds = 90
/** The provider has to honour a route for this long: longer than any signature for its quote is valid. */
export const routeMarginSeconds = quoteMs / 1_000 + svmSignatureSeconds + 30

export const otherProviderMs = 1_500
