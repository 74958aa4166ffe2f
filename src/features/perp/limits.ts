/** Minimum amounts from configuration, for validation and capabilities. */
export type PerpLimits = {
  minOrderUsd: string
  minFundUsd: string
  minWithdrawUsd: string
  /** The venue's fee per withdrawal. */
  withdrawFeeUsd: string
}

/** The chain, token and bridge of deposits and withdrawals. */
export type FundingRoute = { chainId: string; symbol: string; token: string; bridge: string }
