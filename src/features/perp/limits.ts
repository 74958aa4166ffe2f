export type PerpLimits = {
  minOrderUsd: string
  minFundUsd: string
  minWithdrawUsd: string
  withdrawFeeUsd: string
}

/** The chain, token and bridge of deposits and withdrawals. */
export type FundingRoute = { chainId: string; symbol: string; token: string; bridge: string }
