import { marketOf, quoteKeyOf } from '#engines/trigger-orders/quote-key.ts'
import type { NewTriggerOrder } from '#engines/trigger-orders/store.ts'
import { type CheckedTpSl, type Trigger, triggerOf } from '#engines/trigger-orders/tp-sl.ts'
import { fractionOf } from '#engines/trigger-orders/trigger-price.ts'
import { type Chain, type Token, toAssetId } from '#kernel/money/chains.ts'
import { type HookInput, hookKind } from './view.ts'

export type NewHook = {
  id: string
  executionId?: string
  userId: string
  chain: Chain
  token: Pick<Token, 'address' | 'symbol'>
  leg: Omit<CheckedTpSl, 'field'>
  /** The price that the percentages of a hook count from. */
  reference: string
  referenceName: HookInput['reference']
  /** The price that a trailing stop counts from. */
  mark: string
  slippageBps: number
  maxImpactBps?: number | undefined
  group: string | null
  expiresAt: Date | null
  /** The units of which the leg sells its fraction. */
  units: bigint
  /** Whether the units are those that a swap received, so that nothing else is sold. */
  isLot: boolean
  at: Date
}

export function triggerRowOf(hook: NewHook): NewTriggerOrder {
  const { chain, token, leg, units, at } = hook
  const trigger = triggerOf(leg, hook)
  return {
    id: hook.id,
    user_id: hook.userId,
    ...(hook.executionId !== undefined && { execution_id: hook.executionId }),
    kind: hookKind,
    market: marketOf(chain, token.address),
    direction: trigger.direction,
    trigger_price: trigger.triggerPrice,
    quote_key: quoteKeyOf({
      tokenIn: toAssetId(chain, token.address),
      tokenOut: toAssetId(chain, chain.usdc),
      amountInUnits: fractionOf(units, leg.sell),
      priced: 'in',
    }),
    ...(leg.type === 'trailing' && { trail: leg.fraction, high_water: hook.mark }),
    oco_group: hook.group,
    // A leg that sells only a part leaves a balance for the other legs to protect.
    ends_group: leg.sell === '1',
    input: hookInput(hook, trigger),
    expires_at: hook.expiresAt,
    created_at: at,
  }
}

const hookInput = (
  { chain, token, leg, referenceName, slippageBps, maxImpactBps, units, isLot }: NewHook,
  { referencePrice }: Trigger,
): HookInput => ({
  chain_id: chain.id,
  token_address: token.address,
  symbol: token.symbol,
  type: leg.type,
  reference: leg.type === 'trailing' ? 'mark' : referenceName,
  reference_price_usd: referencePrice,
  sell_percentage: leg.sell,
  slippage_bps: slippageBps,
  ...(maxImpactBps !== undefined && { max_price_impact_bps: maxImpactBps }),
  usdc: chain.usdc,
  ...(isLot && { lot_units: String(units), lot_left: String(units) }),
})
