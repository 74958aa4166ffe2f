/** A trading key is replaced this long before it expires. */
export const renewAheadMs = 14 * 86_400_000
