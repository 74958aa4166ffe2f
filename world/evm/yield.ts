const ray = 10n ** 27n
const yearSeconds = 365 * 86_400

/**
 * The vault's factor per second for a compounding yearly yield: 600 bps read over any span gives 6.00 % a year. A
 * double holds the small excess over one with 16 digits, and the contract needs no more.
 */
export const growthPerSecond = (yearlyBps: number): bigint =>
  ray + BigInt(Math.round(Math.expm1(Math.log1p(yearlyBps / 10_000) / yearSeconds) * 1e27))

export const yearlyBpsOf = (growth: bigint): number =>
  Math.round(Math.expm1(Math.log1p(Number(growth - ray) / 1e27) * yearSeconds) * 10_000)
