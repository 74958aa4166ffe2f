/** At most this many positions of a user have shares, because each comparison with the chain reads all of them. */
export const openPositionsMax = 1_000

export const earnLimits = { minDepositUsdc: '1', minWithdrawUsdc: '1' } as const
export type EarnLimits = { minDepositUsdc: string; minWithdrawUsdc: string }
