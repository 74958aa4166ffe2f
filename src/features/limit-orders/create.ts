import type { Pricer } from '#engines/trigger-orders/pricer.ts'
import { marketOf, type QuotedTrade, quoteKeyOf } from '#engines/trigger-orders/quote-key.ts'
import { expiryOf } from '#engines/trigger-orders/requested-expiry.ts'
import {
  assertOrderLimit,
  insertTriggerOrders,
  orderRoom,
  ordersById,
} from '#engines/trigger-orders/store.ts'
import type { OrderSwap, PreparedOrder, SwapExecution } from '#engines/trigger-orders/swap-port.ts'
import type { Clock } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, invalid, renameFields } from '#kernel/contract/fault.ts'
import {
  type ServedTokens,
  sellableToken,
  type TokenAt,
  type TokenFacts,
} from '#kernel/contract/token-ref.ts'
import { type Chain, sameAddress, toAssetId } from '#kernel/money/chains.ts'
import { unitsWorth } from '#kernel/money/money.ts'
import { type Attempt, createAdmission } from '#kernel/task/admission.ts'
import { actionTerms } from '#kernel/task/approval.ts'
import { armedExecutionId } from '#kernel/task/execution-id.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { EndResult, Steps, TaskView } from '#kernel/task/task.ts'
import type { TriggerDirection } from '#kernel/task/trigger-order.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import type { LimitOrderInput } from './contract.ts'
import {
  type LimitOrderData,
  type LimitOrderRow,
  limitOrderEvent,
  limitOrderKind,
  limitOrderView,
} from './view.ts'

/** A limit order is checked as if it were executed now, and its task ends once the order is armed. */

export type LimitOrderDeps = {
  db: Queryable
  chains: readonly Chain[]
  tokenFacts: TokenFacts
  pricer: Pricer
  swaps: Pick<SwapExecution, 'prepare'>
  policy: Pick<Policy, 'check'>
  clock: Clock
}

type CreateData = {
  order: LimitOrderData & JsonObject
  market: string
  quote_key: string
  direction: TriggerDirection
  expires_at: string | null
}

export const admitLimitOrder = (deps: LimitOrderDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: LimitOrderInput, attempt) => checkOrder(deps, input, attempt),
    start: ({ data }) => ({ first: 'arm' as const, data, orders: orderRoom(1) }),
  })

async function checkOrder(deps: LimitOrderDeps, input: LimitOrderInput, { userId, principal }: Attempt) {
  const { db, pricer, swaps, policy, clock } = deps
  if ((input.amount === undefined) === (input.amount_usd === undefined))
    throw exactlyOneOf('amount', 'amount_usd', { hasBoth: input.amount !== undefined })
  const tokens = await orderTokens(deps, input)
  const { origin, destination, trigger } = tokens
  const expiresAt = expiryOf(input, clock.now())
  const swap: OrderSwap = {
    chainIn: origin.chain.id,
    chainOut: destination.chain.id,
    tokenIn: origin.token.address,
    tokenOut: destination.token.address,
    amount: input.amount === undefined ? { usd: input.amount_usd! } : { units: BigInt(input.amount) },
    slippageBps: input.slippage_bps ?? 100,
    isExit: false,
  }
  const market = marketOf(trigger.chain, trigger.token.address)
  const [displayed, prepared] = await Promise.all([
    pricer.displayPrices([market]),
    swaps.prepare(swap, userId).catch((error: unknown) => {
      throw renameFields(error, swapFields(input))
    }),
    assertOrderLimit(db, userId, { added: 1 }),
  ])
  // The policy checks the value of the order now, so that a person can approve it: nobody is there to do so when the
  // order fires.
  const swapTerms = prepared.action.terms
  const at = `when the price ${input.condition === 'gte' ? 'is at least' : 'is at most'} ${input.price_usd_trigger} USD`
  const terms = swapTerms && actionTerms(`${swapTerms.text}, ${at}`, swapTerms)
  await policy.check({ ...prepared.action, principal, ...(terms && { terms }) })
  if (!displayed.has(market))
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${trigger.token.symbol}, so the order could not fire`,
    )
  const { order, trade } = pricedOrder({ ...input, slippage_bps: swap.slippageBps }, tokens, prepared)
  const quoteKey = quoteKeyOf(trade)
  // The route of the swap was quoted already. If a token outside the swap triggers the order, this token has to be
  // quoted too.
  if (order.priced === null) await assertQuoted(deps, quoteKey, userId)
  const data: CreateData = {
    order,
    market,
    quote_key: quoteKey,
    direction: input.condition,
    expires_at: expiresAt?.toISOString() ?? null,
  }
  // The value counts against the limits when the order is executed.
  const action = { ...prepared.action, operation: 'limit_order_create', usdMicros: 0n }
  return { action, data }
}

type OrderTokens = Record<'origin' | 'destination' | 'trigger', TokenAt>

async function orderTokens(
  { chains, tokenFacts }: LimitOrderDeps,
  input: LimitOrderInput,
): Promise<OrderTokens> {
  const served: ServedTokens = { group: 'Limit orders', chains, tokenFacts }
  const origin = await sellableToken(served, {
    chain: input.chain_id_in,
    chainField: 'chain_id_in',
    token: input.token_in,
    field: 'token_in',
  })
  const destination = await sellableToken(served, {
    chain: input.chain_id_out ?? input.chain_id_in,
    chainField: 'chain_id_out',
    token: input.token_out,
    field: 'token_out',
  })
  const trigger = await sellableToken(served, {
    chain: input.trigger_token_chain ?? destination.chain.id,
    chainField: 'trigger_token_chain',
    token: input.trigger_token_address ?? destination.token.address,
    field: 'trigger_token_address',
  })
  if (!isUsdc(trigger)) return { origin, destination, trigger }
  throw invalid(
    'trigger_token_address',
    'unsupported_asset',
    'USDC has the fixed price 1: set `trigger_token_address` to the token whose price counts, for a sale that of `token_in`',
  )
}

const isUsdc = ({ chain, token }: TokenAt): boolean => sameAddress(chain, token.address, chain.usdc)
const assetAt = ({ chain, token }: TokenAt): string => toAssetId(chain, token.address)

/** Returns the stored order, and the trade whose quotes trigger it. */
function pricedOrder(
  input: LimitOrderInput & { slippage_bps: number },
  { origin, destination, trigger }: OrderTokens,
  { action, amounts }: PreparedOrder,
): { order: LimitOrderData; trade: QuotedTrade } {
  const [tokenIn, tokenOut] = [assetAt(origin), assetAt(destination)]
  const triggerToken = assetAt(trigger)
  const priced = triggerToken === tokenOut ? 'out' : triggerToken === tokenIn ? 'in' : null
  const order: LimitOrderData = {
    chain_id_in: origin.chain.id,
    chain_id_out: destination.chain.id,
    token_in: origin.token.address,
    token_out: destination.token.address,
    symbol_in: origin.token.symbol,
    symbol_out: destination.token.symbol,
    decimals_in: origin.token.decimals,
    decimals_out: destination.token.decimals,
    amount: String(amounts.inUnits),
    price_usd_trigger: input.price_usd_trigger,
    condition: input.condition,
    trigger_token_address: trigger.token.address,
    trigger_token_chain: trigger.chain.id,
    priced,
    usdc: isUsdc(origin) ? 'in' : isUsdc(destination) ? 'out' : null,
    slippage_bps: input.slippage_bps,
  }
  if (priced !== null) return { order, trade: { tokenIn, tokenOut, amountInUnits: amounts.inUnits, priced } }
  // The quotes are for the units of the trigger token that are worth the order's value at the trigger price.
  const amountInUnits = unitsWorth(action.usdMicros, trigger.token.decimals, input.price_usd_trigger) || 1n
  const usdc = toAssetId(trigger.chain, trigger.chain.usdc)
  return { order, trade: { tokenIn: triggerToken, tokenOut: usdc, amountInUnits, priced: 'in' } }
}

/** Maps fields of a limit order to those of a swap, which always has both chains and an amount in units. */
const swapFields = ({ amount, chain_id_out }: LimitOrderInput) => ({
  amount: amount === undefined ? 'amount_usd' : 'amount',
  chain_id_out: chain_id_out === undefined ? 'chain_id_in' : 'chain_id_out',
})

/** Throws if nobody quotes the trigger token, because the order would never fire. */
async function assertQuoted({ pricer }: LimitOrderDeps, quoteKey: string, userId: string): Promise<void> {
  await pricer.quotePrice(quoteKey, userId).catch((fault: unknown) => {
    if (!(fault instanceof Fault) || fault.retryable) throw fault
    throw invalid(
      'price_usd_trigger',
      'value_error',
      `Input should be a price at which the trigger token can be sold for the value of the order: ${fault.message}`,
    )
  })
}

type CreateTask = TaskView<CreateData>

export const limitOrderSteps: Steps<CreateData, 'arm'> = {
  arm: async (task, { now }) => arm(task, now),
}

/** The order has the id of its task, so that a repeated step arms nothing twice. */
function arm({ id, executionId, userId, data }: CreateTask, now: Date): EndResult<never> {
  const { order, market, quote_key, direction, expires_at } = data
  const row = {
    id,
    user_id: userId,
    kind: limitOrderKind,
    market,
    direction,
    trigger_price: order.price_usd_trigger,
    quote_key,
    input: order,
    source_task_id: id,
    execution_id: armedExecutionId(executionId, limitOrderKind),
    expires_at: expires_at === null ? null : new Date(expires_at),
    created_at: now,
  }
  const created: LimitOrderRow = {
    ...row,
    trail: null,
    high_water: null,
    oco_group: null,
    ends_group: true,
    status: 'armed',
    cancelled_by: null,
    attempts: 0,
    entry_cloid: null,
    task_id: null,
    task_end: null,
    updated_at: now,
    task_status: null,
    task_state: null,
    task_result: null,
    task_error: null,
    priced_at: null,
  }
  return {
    end: 'completed',
    outcome: 'executed',
    result: { order: limitOrderView(created, now) },
    events: [limitOrderEvent(created)],
    async writes(tx) {
      await insertTriggerOrders(tx, [row])
    },
  }
}

export const findLimitOrder = async (
  db: Queryable,
  userId: string,
  id: string,
): Promise<LimitOrderRow | undefined> => {
  const [row] = await ordersById<LimitOrderData & JsonObject>(db, userId, [id])
  return row?.kind === limitOrderKind ? row : undefined
}
