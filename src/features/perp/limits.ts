export type PerpLimits = {
  minOrderUsd: string
  minFundUsd: string
  minWithdrawUsd: string
  withdrawFeeUsd: string
}

export type FundingRoute = { chainId: string; symbol: string; token: string; bridge: string }
