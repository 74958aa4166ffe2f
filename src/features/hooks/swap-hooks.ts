import { cancelWaiting } from '#engines/trigger-orders/cancel.ts'
import type { DisplayPrice } from '#engines/trigger-orders/price-watch.ts'
import { marketOf } from '#engines/trigger-orders/quote-key.ts'
import {
  assertOrderLimit,
  insertTriggerOrders,
  type OrderRow,
  openOrdersOn,
  ordersById,
} from '#engines/trigger-orders/store.ts'
import { assertSide, type CheckedTpSl, type Trigger, triggerOf } from '#engines/trigger-orders/tp-sl.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { type Chain, sameAddress, sellsTokens, type Token } from '#kernel/money/chains.ts'
import { armedExecutionId } from '#kernel/task/execution-id.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { triggerRowOf } from './trigger-row.ts'
import { type HookInput, hookEvent, hookKind } from './view.ts'

/**
 * This module arms the hooks of a swap for the units that the swap received, at the price that it paid. It also cancels
 * the hooks on a token that have not fired, if the swap requests that.
 */

export type SwapHookDeps = {
  db: Queryable
  displayPrices(markets: readonly string[]): Promise<ReadonlyMap<string, DisplayPrice>>
  policy: Pick<Policy, 'check'>
}
type TokenOn = { chain: Chain; token: Token }
export type LegRequest = TokenOn & {
  userId: string
  legs: readonly CheckedTpSl[]
  /** The price of the quote, in dollars per token. */
  price: string
}
export type NewSwapHooks = TokenOn & {
  userId: string
  executionId: string
  legs: readonly (Omit<CheckedTpSl, 'field'> & { id: string })[]
  group: string | null
  /** The price that was paid, in dollars per token. */
  price: string
  /** The units of the token that the swap received. */
  units: bigint
  slippageBps: number
  maxImpactBps?: number | undefined
  at: Date
}
export type SwapHooks = {
  /** Returns the triggers of the legs at the price of the quote. Throws if one of the legs could not be armed. */
  check(request: LegRequest): Promise<Trigger[]>
  /** Arms the hooks of a swap, in the commit that ends the swap. */
  arm(tx: Tx, hooks: NewSwapHooks): Promise<{ triggers: Trigger[]; events: NewEvent[] }>
  /** Returns the ids of the hooks on a token that have not fired. */
  openOn(userId: string, token: TokenOn): Promise<string[]>
  /** Cancels the hooks on a token that have not fired, in the commit that ends the swap. */
  cancelOn(
    tx: Tx,
    userId: string,
    where: TokenOn & { at: Date },
  ): Promise<{ ids: string[]; events: NewEvent[] }>
}

type Row = OrderRow<HookInput & JsonObject>

export const createSwapHooks = (deps: SwapHookDeps): SwapHooks => ({
  ...swapHookWrites,
  check: (request) => check(deps, request),
  openOn: async (userId, { chain, token }) =>
    (await openHooks(deps.db, userId, { chain, token })).map(({ id }) => id),
})

export const swapHookWrites: Pick<SwapHooks, 'arm' | 'cancelOn'> = {
  async arm(tx, hooks) {
    const { userId, chain, token, price, at } = hooks
    const rows = hooks.legs.map(({ id, ...leg }, nth) =>
      triggerRowOf({
        id,
        executionId: armedExecutionId(hooks.executionId, String(nth)),
        userId,
        chain,
        token,
        leg,
        reference: price,
        referenceName: 'entry',
        mark: price,
        slippageBps: hooks.slippageBps,
        maxImpactBps: hooks.maxImpactBps,
        group: hooks.group,
        expiresAt: null,
        units: hooks.units,
        isLot: true,
        at,
      }),
    )
    await insertTriggerOrders(tx, rows)
    const armed = await ordersById<HookInput & JsonObject>(
      tx,
      userId,
      rows.map(({ id }) => id),
    )
    return {
      triggers: hooks.legs.map((leg) => triggerOf(leg, { reference: price, mark: price })),
      events: armed.map(hookEvent),
    }
  },

  async cancelOn(tx, userId, { at, ...token }) {
    const ids = (await openHooks(tx, userId, token)).map(({ id }) => id)
    const cancelled = new Set(
      (await cancelWaiting(tx, userId, { ids, kinds: [hookKind], at })).map(({ id }) => id),
    )
    const rows = await ordersById<HookInput & JsonObject>(tx, userId, [...cancelled])
    return { ids: ids.filter((id) => cancelled.has(id)), events: rows.map(hookEvent) }
  },
}

const openHooks = (db: Queryable, userId: string, { chain, token }: TokenOn): Promise<Row[]> =>
  openOrdersOn<HookInput & JsonObject>(db, userId, { kind: hookKind, market: marketOf(chain, token.address) })

async function check(
  { db, displayPrices, policy }: SwapHookDeps,
  { userId, legs, chain, token, price }: LegRequest,
): Promise<Trigger[]> {
  const [{ field } = { field: '' }] = legs
  if (!sellsTokens(chain))
    throw invalid(
      field,
      'unsupported_chain',
      `Hooks do not serve ${chain.displayName}: \`chains_list\` shows what each chain serves`,
    )
  if (sameAddress(chain, token.address, chain.usdc))
    throw invalid(field, 'unsupported_asset', 'Hooks sell into USDC: `token_out` should be another token')
  for (const leg of legs) assertSide(leg, price)
  const market = marketOf(chain, token.address)
  const [displayed] = await Promise.all([
    displayPrices([market]),
    policy.check({
      userId,
      operation: hookKind,
      chainId: chain.id,
      tokens: [token.address, chain.usdc],
      recipients: [],
      usdMicros: 0n,
      exit: true,
    }),
    assertOrderLimit(db, userId, { added: legs.length, field }),
  ])
  if (!displayed.has(market))
    throw new Fault(
      'unavailable',
      `\`${field}\`: there is no trusted price of ${token.symbol} now, so a hook could not fire: try again later, or choose another token`,
    )
  return legs.map((leg) => triggerOf(leg, { reference: price, mark: price }))
}
