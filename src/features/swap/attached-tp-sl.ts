import { fillPrice, swapValue } from '#engines/cost-basis/store.ts'
import { orderRoom } from '#engines/trigger-orders/store.ts'
import type { SwapHooks } from '#features/hooks/swap-hooks.ts'
import { uuidv7 } from '#kernel/id.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import type { StepAddition, Tx } from '#kernel/task/task.ts'
import type { SwapHookView } from './contract.ts'
import type { SwapDeps } from './deps.ts'
import type { PreparedSwap } from './route/prepare-swap.ts'
import type { AskedTerms } from './route/terms.ts'
import type { AttachedTpSl, SwapTask, SwapTaskData } from './task-data.ts'

export type Attached = {
  /** The hooks as they would be armed at the price of the quote. */
  views: SwapHookView[]
  /** The ids of hooks on the sold token that the swap cancels; null if the request leaves them in place. */
  cancelledIds: string[] | null
}

/** Checks the hooks that a request attaches to a swap; throws if a leg could not be armed after the swap. */
export async function checkAttached(
  { hooks }: SwapDeps,
  { terms, route, usdMicros }: PreparedSwap,
): Promise<Attached> {
  const { userId, origin, destination, legs, cancelsHooks } = terms
  const [bought, sold] = [destination, origin].map(({ chain, token }, at) => ({
    decimals: token.decimals,
    units: at === 0 ? route.amountOutUnits : route.amountInUnits,
    isUsdc: sameAddress(chain, token.address, chain.usdc),
  }))
  const price = fillPrice(bought!, swapValue(sold!, bought!, usdMicros))
  const { chain, token } = destination
  const [triggers, cancelledIds] = await Promise.all([
    legs.length === 0 ? [] : hooks.check({ userId, legs, chain, token, price }),
    cancelsHooks ? hooks.openOn(userId, origin) : null,
  ])
  const views = legs.map(({ type, sell }, at) => ({
    id: null,
    type,
    trigger_price_usd: triggers[at]!.triggerPrice,
    sell_percentage: sell,
  }))
  return { views, cancelledIds }
}

/** Returns attached hooks as task data, with the number of orders that counts against the user's limit. */
export function attachedData(
  { clock, random }: SwapDeps,
  { views, cancelledIds }: Attached,
  { legs, slippageBps, maxImpactBps }: AskedTerms,
) {
  const now = clock.now()
  const attached: AttachedTpSl = {
    legs: legs.map(({ field: _, ...leg }) => ({ ...leg, id: uuidv7(now, random) })),
    group: legs.length > 1 ? uuidv7(now, random) : null,
    slippage_bps: slippageBps,
    max_price_impact_bps: maxImpactBps,
  }
  return {
    data: {
      ...(legs.length > 0 && { attached, hooks: views }),
      ...(cancelledIds && { cancels_hooks: true }),
    } satisfies Partial<SwapTaskData> as Partial<SwapTaskData>,
    ...(legs.length > 0 && { orders: orderRoom(legs.length, legs[0]!.field) }),
  }
}

export type SwapFilled = {
  task: SwapTask
  bought: { units: bigint; decimals: number }
  /** The value of the swap, in units of 1e-18 dollars. */
  value: bigint
  at: Date
}

export type FillDeps = Pick<SwapDeps, 'chains'> & { hooks: Pick<SwapHooks, 'arm' | 'cancelOn'> }

/** Arms and cancels hooks in the commit that completes the swap, so that they exist exactly if it has completed. */
export async function completeAttached(
  { chains, hooks }: FillDeps,
  tx: Tx,
  { task: { data, userId, executionId }, bought, value, at }: SwapFilled,
): Promise<StepAddition> {
  const { attached, cancels_hooks: cancels = false, origin, destination } = data
  const chainOf = (chainId: string) => chains.find(({ id }) => id === chainId)!
  const cancelled = cancels
    ? await hooks.cancelOn(tx, userId, { chain: chainOf(origin.chain_id), token: origin.token, at })
    : { ids: [], events: [] }
  const armed = attached
    ? await hooks.arm(tx, {
        userId,
        executionId,
        chain: chainOf(destination.chain_id),
        token: destination.token,
        ...attached,
        price: fillPrice(bought, value),
        units: bought.units,
        slippageBps: attached.slippage_bps,
        maxImpactBps: attached.max_price_impact_bps,
        at,
      })
    : { triggers: [], events: [] }
  const views = attached?.legs.map(({ id, type, sell }, n) => ({
    id,
    type,
    trigger_price_usd: armed.triggers[n]!.triggerPrice,
    sell_percentage: sell,
  }))
  return {
    events: [...cancelled.events, ...armed.events],
    data: { ...(views && { hooks: views }), ...(cancels && { cancelled_hook_ids: cancelled.ids }) },
    result: {
      ...(attached && { hook_ids: attached.legs.map(({ id }) => id) }),
      ...(cancels && { cancelled_hook_ids: cancelled.ids }),
    },
  }
}
