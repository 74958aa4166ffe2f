/** The minimums of the product, in the one place that validation and capabilities read; from configuration. */
export type PerpLimits = {
  minOrderUsd: string
  minFundUsd: string
  minWithdrawUsd: string
  /** What the venue keeps of a withdrawal. */
  withdrawFeeUsd: string
}
export const perpLimits: PerpLimits = {
  minOrderUsd: '10',
  minFundUsd: '5',
  minWithdrawUsd: '2',
  withdrawFeeUsd: '1',
}

/** Where money comes from and goes to. Other chains and tokens will arrive over swaps, at exactly this place. */
export type FundingRoute = { chainId: string; symbol: string; token: string; bridge: string }
