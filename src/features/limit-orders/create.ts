import { expiryOf } from '#engines/trigger-orders/expiry.ts'
import type { Pricer } from '#engines/trigger-orders/pricer.ts'
import { marketOf, quoteKeyOf } from '#engines/trigger-orders/quote-key.ts'
import type { OrderRules, OrderSwap, SwapExecution } from '#engines/trigger-orders/run-order.ts'
import { assertOrderLimit, insertTriggerOrders, ordersById } from '#engines/trigger-orders/store.ts'
import { createAdmission } from '#kernel/admission.ts'
import { assetOf, type Chain, type EvmChainRow, sameAddress, type Token } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/fault.ts'
import type { JsonObject } from '#kernel/json.ts'
import { fixedPointDecimals, mulDiv, toFixedPoint } from '#kernel/money.ts'
import type { Policy } from '#kernel/signer.ts'
import type { EndResult, Steps, TaskView } from '#kernel/task.ts'
import { chainByRef, tokenByRef } from '#kernel/token-ref.ts'
import type { TriggerDirection } from '#kernel/trigger-order.ts'
import type { Queryable } from '#store/query.ts'
import type { LimitOrderInput } from './contract.ts'
import {
  type LimitOrderData,
  type LimitOrderRow,
  limitOrderEvent,
  limitOrderKind,
  limitOrderView,
} from './view.ts'

/** The order is checked as if it were executed now; its task ends once it is armed. */

export type LimitOrderDeps = {
  db: Queryable
  chains: readonly Chain[]
  tokenFacts(chainId: string, address: string): Promise<Token | undefined>
  pricer: Pricer
  swaps: Pick<SwapExecution, 'prepare'>
  policy: Pick<Policy, 'check'>
  /** Kinds of orders that share one limit. */
  orderKinds: readonly string[]
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
    check: (input: LimitOrderInput, { userId }) => checkOrder(deps, input, userId),
    start: ({ data }) => ({ first: 'arm' as const, data }),
  })

async function checkOrder(deps: LimitOrderDeps, input: LimitOrderInput, userId: string) {
  const { db, pricer, swaps, policy, clock } = deps
  if ((input.amount === undefined) === (input.amount_usd === undefined))
    throw exactlyOneOf('amount', 'amount_usd', { hasBoth: input.amount !== undefined })
  const origin = await tokenAt(deps, {
    chain: input.chain_id_in,
    chainField: 'chain_id_in',
    token: input.token_in,
    field: 'token_in',
  })
  const destination = await tokenAt(deps, {
    chain: input.chain_id_out ?? input.chain_id_in,
    chainField: 'chain_id_out',
    token: input.token_out,
    field: 'token_out',
  })
  const trigger = await triggerToken(deps, input, destination)
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
    swaps.prepare(swap, userId),
    assertOrderLimit(db, userId, deps.orderKinds, 1),
  ])
  await policy.check(prepared.action)
  if (!displayed.has(market))
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${trigger.token.symbol}, so the order could not fire`,
    )
  const names = {
    in: assetOf(origin.chain, origin.token.address),
    out: assetOf(destination.chain, destination.token.address),
  }
  const triggerName = assetOf(trigger.chain, trigger.token.address)
  const priced: LimitOrderData['priced'] =
    triggerName === names.out ? 'out' : triggerName === names.in ? 'in' : null
  const { inUnits } = prepared.amounts
  const order: LimitOrderData = {
    chain_id_in: origin.chain.id,
    chain_id_out: destination.chain.id,
    token_in: origin.token.address,
    token_out: destination.token.address,
    decimals_in: origin.token.decimals,
    decimals_out: destination.token.decimals,
    amount: String(inUnits),
    price_usd_trigger: input.price_usd_trigger,
    condition: input.condition,
    trigger_token_address: trigger.token.address,
    trigger_token_chain: trigger.chain.id,
    priced,
    usdc: isUsdc(origin) ? 'in' : isUsdc(destination) ? 'out' : null,
    slippage_bps: swap.slippageBps,
  }
  const trade =
    priced === null
      ? {
          tokenIn: triggerName,
          tokenOut: assetOf(trigger.chain, trigger.chain.usdc),
          amountInUnits: unitsWorth(prepared.action.usdMicros, trigger.token, input.price_usd_trigger),
          priced: 'in' as const,
        }
      : { tokenIn: names.in, tokenOut: names.out, amountInUnits: inUnits, priced }
  const data: CreateData = {
    order,
    market,
    quote_key: quoteKeyOf(trade),
    direction: input.condition,
    expires_at: expiresAt?.toISOString() ?? null,
  }
  // The value counts when the order is executed.
  const action = { ...prepared.action, operation: 'limit_order_create', usdMicros: 0n }
  return { action, data }
}

const isUsdc = ({ chain, token }: TokenAt): boolean => sameAddress(chain, token.address, chain.usdc)

/** Of the trigger token, worth the order at the trigger price. */
const unitsWorth = (micros: bigint, { decimals }: Token, price: string): bigint => {
  const units = mulDiv(
    micros * 10n ** BigInt(fixedPointDecimals - 6),
    10n ** BigInt(decimals),
    toFixedPoint(price),
  )
  return units > 0n ? units : 1n
}

type Named = { chain: string | number; chainField: string; token: string; field: string }
type TokenAt = { chain: EvmChainRow; token: Token }

async function tokenAt({ chains, tokenFacts }: LimitOrderDeps, named: Named): Promise<TokenAt> {
  const chain = chainByRef(chains, named.chain, named.chainField)
  if (chain.family !== 'evm' || chain.swaps === null)
    throw invalid(named.chainField, 'unsupported_chain', `Limit orders do not serve ${chain.displayName}`)
  const found = tokenByRef(chain, named.token, named.field)
  const token = 'token' in found ? found.token : await tokenFacts(chain.id, found.unlisted)
  if (token) return { chain, token }
  throw invalid(named.field, 'unsupported_asset', `Input should be a token on ${chain.displayName}`)
}

async function triggerToken(
  deps: LimitOrderDeps,
  { trigger_token_address: ref, trigger_token_chain: chainRef }: LimitOrderInput,
  destination: TokenAt,
): Promise<TokenAt> {
  const chain = chainRef ?? destination.chain.id
  const token = ref ?? destination.token.address
  const found = await tokenAt(deps, {
    chain,
    chainField: 'trigger_token_chain',
    token,
    field: 'trigger_token_address',
  })
  if (!sameAddress(found.chain, found.token.address, found.chain.usdc)) return found
  throw invalid(
    'trigger_token_address',
    'unsupported_asset',
    'The trigger is about USDC, whose price is 1: name the token whose price counts, as `token_in` of a sale',
  )
}

type CreateTask = TaskView<CreateData>

export const limitOrderSteps = (deps: LimitOrderDeps): Steps<CreateData, 'arm'> => ({
  arm: async (task, { now }) => arm(deps, task, now),
})

/** The id of the order is that of its task, so that a repeated step arms nothing twice. */
function arm({ orderKinds }: LimitOrderDeps, { id, userId, data }: CreateTask, now: Date): EndResult<never> {
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
      await assertOrderLimit(tx, userId, orderKinds, 0)
    },
  }
}

/** How a limit order that fired swaps: its amount, or what is left of it. */
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
      tokenIn: `${chain_id_in}:${token_in.toLowerCase()}`,
      tokenOut: `${chain_id_out}:${token_out.toLowerCase()}`,
      priced,
    },
  event: limitOrderEvent,
  resultOf: (orderId) => ({ limit_order_id: orderId }),
}

export const findLimitOrder = async (
  db: Queryable,
  userId: string,
  id: string,
): Promise<LimitOrderRow | undefined> => {
  const [row] = await ordersById<LimitOrderData & JsonObject>(db, userId, [id])
  return row?.kind === limitOrderKind ? row : undefined
}
