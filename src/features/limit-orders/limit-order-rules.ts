import type { OrderRules } from '#engines/trigger-orders/order-kind-rules.ts'
import { toAssetId } from '#kernel/money/chains.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type LimitOrderData, limitOrderEvent, limitOrderKind } from './view.ts'

export const limitOrderRules: OrderRules<LimitOrderData & JsonObject> = {
  kind: limitOrderKind,
  soldToken: ({ chain_id_in, token_in }) => ({ chainId: chain_id_in, address: token_in }),
  swapOf(order, availableUnits) {
    const wanted = BigInt(order.amount)
    const units = wanted < availableUnits ? wanted : availableUnits
    if (units === 0n) return null
    return {
      chainIn: order.chain_id_in,
      chainOut: order.chain_id_out,
      tokenIn: order.token_in,
      tokenOut: order.token_out,
      amount: { units },
      slippageBps: order.slippage_bps,
      isExit: false,
    }
  },
  priced: ({ priced, chain_id_in, token_in, chain_id_out, token_out }) =>
    priced && {
      tokenIn: toAssetId({ id: chain_id_in }, token_in),
      tokenOut: toAssetId({ id: chain_id_out }, token_out),
      priced,
    },
  event: limitOrderEvent,
  resultOf: (orderId) => ({ limit_order_id: orderId }),
}
