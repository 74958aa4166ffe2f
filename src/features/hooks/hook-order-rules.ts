import type { OrderRules } from '#engines/trigger-orders/order-kind-rules.ts'
import { takeFromLot } from '#engines/trigger-orders/store.ts'
import type { AvailableUnits } from '#engines/trigger-orders/swap-port.ts'
import { fractionOf } from '#engines/trigger-orders/trigger-price.ts'
import { toAssetId } from '#kernel/money/chains.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import { type HookInput, type HookRow, hookEvent, hookKind } from './view.ts'

const atMost = (units: bigint, max: bigint): bigint => (units > max ? max : units)

export const hookRules: OrderRules<HookInput & JsonObject> = {
  kind: hookKind,
  soldToken: ({ chain_id, token_address }) => ({ chainId: chain_id, address: token_address }),
  unitsMax: lotLeft,
  swapOf(input, sellableUnits) {
    const { chain_id, token_address, usdc, sell_percentage, slippage_bps, lot_units } = input
    const wanted = fractionOf(lot_units === undefined ? sellableUnits : BigInt(lot_units), sell_percentage)
    const units = atMost(wanted, sellableUnits)
    if (units === 0n) return null
    return {
      chainIn: chain_id,
      chainOut: chain_id,
      tokenIn: token_address,
      tokenOut: usdc,
      amount: { units },
      slippageBps: slippage_bps,
      maxImpactBps: input.max_price_impact_bps,
      isExit: true,
    }
  },
  priced: ({ chain_id, token_address, usdc }) => ({
    tokenIn: toAssetId({ id: chain_id }, token_address),
    tokenOut: toAssetId({ id: chain_id }, usdc),
    priced: 'in',
  }),
  event: hookEvent,
  resultOf: (orderId) => ({ hook_id: orderId }),
  onSold: (tx, { id }, units) => takeFromLot(tx, id, units),
}

/**
 * What is left to sell of the units that a swap received, or null if the hook sells from the whole balance.
 * Hooks of a group may sell at the same time, so each subtracts what the others sell, or will sell if they
 * fired before it.
 */
async function lotLeft(
  db: Queryable,
  { id, task_id, oco_group, input: { lot_left: left } }: HookRow,
): Promise<AvailableUnits | null> {
  if (left === undefined) return null
  const leftUnits = BigInt(left)
  if (oco_group === null) return { units: leftUnits, heldUnits: 0n }
  const [row] = await query<{ units: string }>(
    db,
    `select (o.input ->> 'lot_left')::numeric - coalesce(sum(coalesce((t.data ->> 'amount_in')::numeric,
         case when s.task_id < $2 then
           floor((s.input ->> 'lot_units')::numeric * (s.input ->> 'sell_percentage')::numeric) else 0 end)), 0) as units
       from trigger_order o left join (trigger_order s join task_queue q on q.task_id = s.task_id
         join task t on t.id = s.task_id) on s.oco_group = o.oco_group and s.id <> o.id and s.status = 'fired'
       where o.id = $1 group by o.id`,
    [id, task_id],
  )
  const free = BigInt(row?.units ?? left)
  const units = free > 0n ? free : 0n
  return { units, heldUnits: leftUnits - units }
}
