/** The minimums of the product, in the one place that validation and capabilities read. */
export const earnLimits = { minDepositUsdc: '1', minWithdrawUsdc: '1' } as const
export type EarnLimits = { minDepositUsdc: string; minWithdrawUsdc: string }
