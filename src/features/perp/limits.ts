import { venueName } from '#engines/venue/records/order-store.ts'

export type PerpLimits = {
  minOrderUsd: string
  minFundUsd: string
  minWithdrawUsd: string
  withdrawFeeUsd: string
}

export const perpFacts = ({ minOrderUsd, minFundUsd, minWithdrawUsd }: PerpLimits) => ({
  venue: venueName,
  min_order_usd: minOrderUsd,
  min_fund_usd: minFundUsd,
  min_withdraw_usd: minWithdrawUsd,
  bracket: true,
})
