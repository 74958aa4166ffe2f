/** The venue's own error texts, and the order status of each. */
const table = {
  tick: ['Price must be divisible by tick size.', 'tickRejected'],
  minimum: ['Order must have minimum value of $10.', 'minTradeNtlRejected'],
  margin: ['Insufficient margin to place order.', 'perpMarginRejected'],
  reduceOnly: ['Reduce only order would increase position.', 'reduceOnlyRejected'],
  ioc: ['Order could not immediately match against any resting orders.', 'iocCancelRejected'],
  trigger: ['Invalid TP/SL price.', 'badTriggerPxRejected'],
  liquidity: ['No liquidity available for market order.', 'marketOrderNoLiquidityRejected'],
  oracle: ['Order price cannot be more than 80% away from the reference price', 'oracleRejected'],
  zero: ['Order has zero size.', 'rejected'],
  size: ['Order has invalid size.', 'rejected'],
  spot: ['Insufficient spot balance', 'insufficientSpotBalanceRejected'],
  delisted: ['Trading is halted.', 'rejected'],
} as const

export type OrderError = { message: string; status: string }

export const orderError = (code: keyof typeof table, asset: number): OrderError => {
  const [message, status] = table[code]
  return { message: `${message} asset=${asset}`, status }
}

export const spotMinimum = (quote: string, asset: number): OrderError => ({
  message: `Order must have minimum value of 10 ${quote}. asset=${asset}`,
  status: 'minTradeNtlRejected',
})

export const tooLarge = (maxUsd: number): OrderError => ({
  message: `Order value too large. Max is $${maxUsd}.`,
  status: 'rejected',
})

export const postOnly = (bbo: string, asset: number): OrderError => ({
  message: `Post only order would have immediately matched, bbo was ${bbo}. asset=${asset}`,
  status: 'badAloPxRejected',
})

export const neverPlaced = (asset: number): string =>
  `Order was never placed, already canceled, or filled. asset=${asset}`
