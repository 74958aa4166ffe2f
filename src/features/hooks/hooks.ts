import type { EventLog } from '#durable/event-log.ts'
import { entryPriceOf } from '#engines/cost-basis/store.ts'
import { expiryOf } from '#engines/trigger-orders/expiry.ts'
import type { Pricer } from '#engines/trigger-orders/pricer.ts'
import { marketOf, quoteKeyOf } from '#engines/trigger-orders/quote-key.ts'
import type { OrderRules, SwapExecution } from '#engines/trigger-orders/run-order.ts'
import { assertOrderLimit, insertTriggerOrders, ordersById } from '#engines/trigger-orders/store.ts'
import { fractionOf } from '#engines/trigger-orders/trigger-price.ts'
import type { Caller, RequestFacts } from '#kernel/caller.ts'
import { assetOf, type Chain, type EvmChainRow, sameAddress, type Token } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/insufficient-balance.ts'
import type { JsonObject } from '#kernel/json.ts'
import { implement, type Operation, preparedAct } from '#kernel/operation.ts'
import type { Policy } from '#kernel/signer.ts'
import type { Tx } from '#kernel/task.ts'
import { chainByRef, tokenByRef } from '#kernel/token-ref.ts'
import type { Queryable } from '#store/query.ts'
import { contract, type HooksInput } from './contract.ts'
import { type CheckedLeg, checkedLegs, triggerOf } from './legs.ts'
import { type HookInput, type HookRow, hookEvent, hookKind, hookView } from './view.ts'

/** Stop-losses and take-profits of tokens: rows that fire on executable quotes and sell into USDC. */

export type HooksDeps = {
  db: Queryable
  chains: readonly Chain[]
  tokenFacts(chainId: string, address: string): Promise<Token | undefined>
  pricer: Pricer
  swaps: Pick<SwapExecution, 'available'>
  policy: Pick<Policy, 'check'>
  events: Pick<EventLog, 'add' | 'notify'>
  /** Kinds of orders that share one limit. */
  orderKinds: readonly string[]
  clock: Clock
  random: Random
}

type Prepared = { rows: Parameters<typeof insertTriggerOrders>[1]; ids: string[] }

export const hooks = (deps: HooksDeps): Operation[] =>
  implement(contract, {
    register: preparedAct(
      (input: HooksInput, caller: Caller) => prepareHooks(deps, input, caller),
      (prepared: Prepared, caller: Caller, request: RequestFacts) =>
        register(deps, prepared, caller, request),
    ),
  })

async function prepareHooks(deps: HooksDeps, input: HooksInput, { userId }: Caller): Promise<Prepared> {
  const { db, pricer, swaps, policy, clock, random } = deps
  const legs = checkedLegs(input)
  const { chain, token } = await heldToken(deps, input)
  const expiresAt = expiryOf(input, clock.now())
  const asset = assetOf(chain, token.address)
  const market = marketOf(chain, token.address)
  const available = await swaps.available(userId, { chainId: chain.id, address: token.address })
  if (available === 0n)
    throw insufficientBalance(token, { what: 'A hook', requiredUnits: 1n, availableUnits: 0n })
  const action = {
    userId,
    operation: hookKind,
    chainId: chain.id,
    tokens: [token.address, chain.usdc],
    recipients: [],
    usdMicros: 0n,
    exit: true,
  }
  const [displayed, mark] = await Promise.all([
    pricer.displayPrices([market]),
    pricer.sellPrice(asset, available, userId),
    policy.check(action),
    assertOrderLimit(db, userId, deps.orderKinds, legs.length),
  ])
  if (!displayed.has(market))
    throw new Fault(
      'unavailable',
      `There is no trusted price of ${token.symbol}, so no hook on it could fire`,
    )
  const reference = await referenceOf(deps, { input, userId, chain, token, mark })
  const group = (input.oco ?? true) && legs.length > 1 ? uuidv7(clock.now(), random) : null
  const rows = legs.map((leg) => {
    const trigger = triggerOf(leg, { reference, mark })
    return hookRow(deps, {
      userId,
      chain,
      token,
      leg,
      trigger,
      reference: input.reference ?? 'entry',
      slippageBps: input.slippage_bps ?? 100,
      group,
      expiresAt,
      units: fractionOf(available, leg.sell),
      mark,
    })
  })
  return { rows, ids: rows.map(({ id }) => id) }
}

async function heldToken({ chains, tokenFacts }: HooksDeps, input: HooksInput) {
  if ((input.chain_id === undefined) === (input.chain === undefined))
    throw exactlyOneOf('chain_id', 'chain', { hasBoth: input.chain !== undefined })
  const field = input.chain_id === undefined ? 'chain' : 'chain_id'
  const chain = chainByRef(chains, (input.chain_id ?? input.chain)!, field)
  if (chain.family !== 'evm' || chain.swaps === null)
    throw invalid(field, 'unsupported_chain', `Hooks do not serve ${chain.displayName}`)
  const found = tokenByRef(chain, input.token_address, 'token_address')
  const token = 'token' in found ? found.token : await tokenFacts(chain.id, found.unlisted)
  if (!token)
    throw invalid('token_address', 'unsupported_asset', `Input should be a token on ${chain.displayName}`)
  if (sameAddress(chain, token.address, chain.usdc))
    throw invalid(
      'token_address',
      'unsupported_asset',
      'Input should be another token than USDC, which hooks buy',
    )
  return { chain, token }
}

type Held = { input: HooksInput; userId: string; chain: EvmChainRow; token: Token; mark: string }

async function referenceOf({ db }: HooksDeps, { input, userId, chain, token, mark }: Held): Promise<string> {
  if (input.reference === 'mark') return mark
  const entry = await entryPriceOf(db, userId, {
    chainId: chain.id,
    address: token.address,
    decimals: token.decimals,
  })
  if (entry !== undefined) return entry
  const needsEntry = checkedLegs(input).some(({ type, fraction }) => type !== 'trailing' && fraction !== null)
  if (!needsEntry) return mark
  throw new Fault(
    'entry_unknown',
    `There is no purchase of ${token.symbol} with this gateway to count from: send \`reference: mark\`, or prices`,
    { extras: { token: token.address } },
  )
}

export type NewHook = {
  userId: string
  chain: EvmChainRow
  token: Token
  leg: CheckedLeg
  trigger: ReturnType<typeof triggerOf>
  reference: HookInput['reference']
  slippageBps: number
  group: string | null
  expiresAt: Date | null
  units: bigint
  mark: string
}

function hookRow({ clock, random }: Pick<HooksDeps, 'clock' | 'random'>, hook: NewHook) {
  const { userId, chain, token, leg, trigger, units } = hook
  const asset = assetOf(chain, token.address)
  const input: HookInput = {
    chain_id: chain.id,
    token_address: token.address,
    symbol: token.symbol,
    type: leg.type,
    reference: leg.type === 'trailing' ? 'mark' : hook.reference,
    reference_price_usd: trigger.referencePrice,
    sell_percentage: leg.sell,
    slippage_bps: hook.slippageBps,
    usdc: chain.usdc,
  }
  const now = clock.now()
  return {
    id: uuidv7(now, random),
    user_id: userId,
    kind: hookKind,
    market: marketOf(chain, token.address),
    direction: trigger.direction,
    trigger_price: trigger.triggerPrice,
    quote_key: quoteKeyOf({
      tokenIn: asset,
      tokenOut: assetOf(chain, chain.usdc),
      amountInUnits: units,
      priced: 'in',
    }),
    ...(leg.type === 'trailing' && { trail: leg.fraction, high_water: hook.mark }),
    oco_group: hook.group,
    // A part leaves something for the others to protect.
    ends_group: leg.sell === '1',
    input,
    expires_at: hook.expiresAt,
    created_at: now,
  }
}

async function register(
  { events, orderKinds, clock }: HooksDeps,
  { rows, ids }: Prepared,
  { userId }: Caller,
  { tx, afterCommit }: RequestFacts,
) {
  const created = await insertHooks(tx!, userId, { rows, ids })
  await events.add(tx!, userId, created.map(hookEvent))
  // The events of the user are locked now: two requests at once cannot pass the limit together.
  await assertOrderLimit(tx!, userId, orderKinds, 0)
  afterCommit!(() => events.notify(userId))
  const views = created.map((row) => hookView(row, clock.now()))
  return { status: 'active' as const, message: `${views.length} hooks wait for their price`, hooks: views }
}

async function insertHooks(tx: Tx, userId: string, { rows, ids }: Prepared): Promise<HookRow[]> {
  await insertTriggerOrders(tx, rows)
  const found = await ordersById<HookInput & JsonObject>(tx, userId, ids)
  return ids.flatMap((id) => found.find((row) => row.id === id) ?? [])
}

/** How a hook that fired sells. */
export const hookRules: OrderRules<HookInput & JsonObject> = {
  kind: hookKind,
  soldToken: ({ chain_id, token_address }) => ({ chainId: chain_id, address: token_address }),
  swapOf({ chain_id, token_address, usdc, sell_percentage, slippage_bps }, availableUnits) {
    const units = fractionOf(availableUnits, sell_percentage)
    if (units === 0n) return null
    return {
      chainIn: chain_id,
      chainOut: chain_id,
      tokenIn: token_address,
      tokenOut: usdc,
      amount: { units },
      slippageBps: slippage_bps,
      isExit: true,
    }
  },
  priced: ({ chain_id, token_address, usdc }) => ({
    tokenIn: `${chain_id}:${token_address.toLowerCase()}`,
    tokenOut: `${chain_id}:${usdc.toLowerCase()}`,
    priced: 'in',
  }),
  event: hookEvent,
  resultOf: (orderId) => ({ hook_id: orderId }),
}
