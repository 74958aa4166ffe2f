/** A user's positions with shares: each comparison with the chain reads all of them. */
export const openPositionsMax = 1_000

/** Minimums of the product; validation and capabilities both read them here. */
export const earnLimits = { minDepositUsdc: '1', minWithdrawUsdc: '1' } as const
export type EarnLimits = { minDepositUsdc: string; minWithdrawUsdc: string }
