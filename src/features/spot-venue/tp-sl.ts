import { completeExits, exitsOfReply } from '#engines/venue/orders/entry-outcome.ts'
import { assertExit, assertTick, assertWorth } from '#engines/venue/orders/order-checks.ts'
import { failedBy, rejectedResult } from '#engines/venue/orders/order-failures.ts'
import { createOrderLookup } from '#engines/venue/orders/order-lookup.ts'
import { type PlacedExits, wantedExits } from '#engines/venue/orders/order-task.ts'
import { factsOf, planOf } from '#engines/venue/orders/place-order.ts'
import { rereadBalances } from '#engines/venue/orders/read-after-write.ts'
import { type ActionPlan, cloidOf } from '#engines/venue/orders/signed-action.ts'
import { requireAgent, tradeDeadlineMs } from '#engines/venue/orders/trade-admission.ts'
import { exitOrder } from '#engines/venue/orders/venue-orders.ts'
import type { Exit, ExitLeg } from '#engines/venue/records/bracket.ts'
import { assetKey } from '#engines/venue/records/markets.ts'
import { createAdmission } from '#kernel/admission.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { invalid } from '#kernel/fault.ts'
import { fromUnits } from '#kernel/money.ts'
import type { EffectUpdate, EndResult, Steps, TaskView } from '#kernel/task.ts'
import type { LegStatus, SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { SpotInput } from './contract.ts'
import type { SpotDeps } from './deps.ts'
import type { GatewayExit, SpotOrderTaskData } from './gateway-triggers.ts'
import { freeOf, insufficientHolding, midOf, requireKnownSpotMarket, smallestLot } from './market.ts'
import { baseTaskData, spotAction } from './trade.ts'
import { assertTriggerLimit, insertTriggers, triggerId } from './triggers.ts'

/** Exits of a spot balance. A single exit may be placed at the venue; an OCO pair is held by the gateway. */

type TpSlInput = SpotInput<'tpSl'>

type TpSlTaskData = SpotOrderTaskData & {
  /** Sells the free balance when the trigger fires. */
  sells_all: boolean
  placed?: PlacedExits
}
type TpSlTask = TaskView<TpSlTaskData>

function exitsWanted(input: TpSlInput): { leg: ExitLeg; price: string }[] {
  const exits = (['tp', 'sl'] as const).flatMap((leg) => {
    const price = input[`${leg}_price`]
    return price === undefined ? [] : [{ leg, price }]
  })
  if (exits.length > 0) return exits
  throw invalid(
    'tp_price',
    'missing',
    'At least one of `tp_price` and `sl_price` is required: add one of them',
    {
      fields: ['tp_price', 'sl_price'],
    },
  )
}

export const admitTpSl = (deps: SpotDeps) =>
  createAdmission({
    policy: deps.policy,
    reread: (userId, admit) => rereadBalances(deps, userId, admit),
    check: (input: TpSlInput, { userId }) => checkTpSl(deps, input, userId),
    async fund({ input, exits, market, free, action }) {
      const size = coveredSize(deps, { market, free, asked: input.size })
      const lowest = exits.reduce(
        (low, { price }) => (compareDecimals(price, low) < 0 ? price : low),
        exits[0]!.price,
      )
      const { minOrderUsd: minimum } = deps.limits
      assertWorth({ size, price: lowest, minimum, field: 'size' }, deps.pricing)
      await assertTriggerLimit(deps.db, action.userId)
      return size
    },
    start(request, size) {
      const data = tpSlTaskData(deps, request, size)
      return { first: 'begin', deadlineMs: tradeDeadlineMs, data }
    },
  })

async function checkTpSl(deps: SpotDeps, input: TpSlInput, userId: string) {
  const { venue, pricing } = deps
  const exits = exitsWanted(input)
  const market = await requireKnownSpotMarket(venue, input.asset)
  for (const { leg, price } of exits) assertTick(price, market, `${leg}_price`, pricing)
  const [account, agent] = await Promise.all([deps.evmAddressOf(userId), requireAgent(deps, userId)])
  const [balances, state, mids] = await Promise.all([
    venue.spotBalances(account, [market.base]),
    venue.account(account),
    venue.mids(),
  ])
  const reference = midOf(mids, market)
  for (const { leg, price } of exits)
    assertExit({ leg, price, isBuy: true, reference, field: `${leg}_price` })
  const free = freeOf(balances, market.base)
  const action = spotAction(deps, {
    userId,
    operation: 'spot_tp_sl',
    symbol: market.symbol,
    usdMicros: 0n,
    exit: true,
  })
  return {
    input,
    action,
    exits,
    market,
    account,
    agent: agent.address,
    sinceMs: state.timeMs,
    reference,
    free,
  }
}
type CheckedTpSl = Awaited<ReturnType<typeof checkTpSl>>

type Asked = { market: SpotMarket; free: string; asked: string | undefined }

/** The size in lots; throws where the free balance does not cover it. */
function coveredSize({ pricing }: SpotDeps, { market, free, asked }: Asked): string {
  const size = pricing.roundSize(asked ?? free, market)
  const lot = fromUnits(1n, market.sizeDecimals)
  if (compareDecimals(size, '0') === 0)
    throw insufficientHolding(market, { what: 'The exit', required: lot, free, note: smallestLot(lot) })
  if (compareDecimals(size, free) > 0)
    throw insufficientHolding(market, { what: 'The exit', required: size, free })
  return size
}

function tpSlTaskData({ triggerHost, clock }: SpotDeps, request: CheckedTpSl, size: string): TpSlTaskData {
  const { input, exits, market, account, agent, sinceMs, reference } = request
  const [only] = exits
  const atVenue = triggerHost === 'venue' && exits.length === 1
  const wanted = (leg: ExitLeg) =>
    atVenue && only?.leg === leg ? { price: only.price, isMarket: true } : null
  return {
    ...baseTaskData({ operation: 'spot_tp_sl', market, account, agent, sinceMs }, clock),
    // The side of the past purchase; its exits have the opposite side.
    is_buy: true,
    size,
    price: reference,
    tif: 'ioc',
    exit: true,
    usd_micros: '0',
    tp: wanted('tp'),
    sl: wanted('sl'),
    gateway_exits: atVenue ? [] : exits,
    sells_all: input.size === undefined,
  }
}

const idsOf = (exits: readonly { leg: ExitLeg; id: string }[], leg: ExitLeg) =>
  exits.filter((each) => each.leg === leg).map(({ id }) => id)

const exitIds = (exits: readonly { leg: ExitLeg; id: string }[]) => ({
  tp_oids: idsOf(exits, 'tp'),
  sl_oids: idsOf(exits, 'sl'),
})

/** The commit that ends the task inserts the triggers. */
function gatewayTriggersResult(
  task: TpSlTask,
  now: Date,
  exits: readonly GatewayExit[],
  effects: EffectUpdate[] = [],
): EndResult<Partial<TpSlTaskData>> {
  const { symbol, size, sells_all } = task.data
  return {
    end: 'completed',
    outcome: 'executed',
    result: exitIds(exits.map(({ leg }) => ({ leg, id: triggerId(task.id, leg) }))),
    writes: (tx) =>
      insertTriggers(tx, {
        userId: task.userId,
        taskId: task.id,
        symbol,
        exits,
        entry: null,
        at: now,
        size: sells_all ? null : size,
      }),
    effects,
  }
}

type TpSlStepDeps = Pick<SpotDeps, 'signedActions' | 'venue' | 'pricing' | 'rejections' | 'onAgentRevoked'>

export function tpSlSteps(deps: TpSlStepDeps): Steps<TpSlTaskData, 'begin' | 'confirm'> {
  const { signedActions, venue, pricing } = deps

  const confirmPlacement = (task: TpSlTask, signal: AbortSignal) => {
    const { account, since_ms: sinceMs } = task.data
    const legs = wantedExits(task.data).map(({ leg }) => leg)
    return signedActions.confirm<Exit[]>({
      task,
      actionKey: 'exits',
      signal,
      parseReply: (replies: LegStatus[]) =>
        replies.length === legs.length ? exitsOfReply(legs, replies) : undefined,
      async lookUp({ allRecords }) {
        const lookup = createOrderLookup(venue, { account, sinceMs, allRecords })
        const found = await Promise.all(legs.map((leg) => lookup.find({ cloid: cloidOf(task.id, leg) })))
        return found.some((each) => each !== undefined) ? exitsOfReply(legs, []) : undefined
      },
    })
  }

  return {
    async begin(task, { now }) {
      const taskData = task.data
      if (taskData.gateway_exits.length > 0) return gatewayTriggersResult(task, now, taskData.gateway_exits)
      const orders = wantedExits(taskData).map((exit) =>
        exitOrder(task.id, taskData, { ...exit, size: taskData.size, name: exit.leg }, pricing),
      )
      const legs = wantedExits(taskData).map(({ leg }) => leg)
      const plan: ActionPlan = {
        actionKey: 'exits',
        ...planOf(taskData),
        facts: factsOf(taskData),
        action: { type: 'order', orders, grouping: 'none' },
        notes: orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: taskData.symbol })),
      }
      return signedActions.sign(task, plan, { now, next: 'confirm', onRefused: (fault) => failedBy(fault) })
    },

    async confirm(task, { now, signal }) {
      const { account } = task.data
      const wanted = wantedExits(task.data)
      let effects: EffectUpdate[] = []
      let { placed } = task.data
      if (!placed) {
        const actionOutcome = await confirmPlacement(task, signal)
        effects = actionOutcome.effects
        if (actionOutcome.type === 'unknown') return signedActions.pollLater(task, 'confirm', actionOutcome)
        if (actionOutcome.type === 'expired') return rejectedResult(deps, task, actionOutcome)
        placed = {
          exits:
            actionOutcome.type === 'executed'
              ? actionOutcome.value
              : rejectedExits(task, actionOutcome.message),
          landedAtMs: await venue.timeMs(account),
        }
      }
      const { exits, isComplete } = await completeExits(venue, task, { ...placed, signal })
      if (!isComplete) {
        const waiting = signedActions.pollLater(task, 'confirm', { effects })
        const known: PlacedExits = { ...placed, exits }
        return { ...waiting, data: { ...waiting.data, placed: known } }
      }
      const missing = exits.filter(({ state }) => state === 'missing').map(({ leg }) => leg)
      // The venue may reject triggers in this market: the gateway holds those exits.
      if (missing.length > 0)
        return gatewayTriggersResult(
          task,
          now,
          wanted
            .filter(({ leg }) => missing.includes(leg))
            .map(({ leg, wanted: { price } }) => ({ leg, price })),
          effects,
        )
      const result = exitIds(exits.map(({ leg, orderId }) => ({ leg, id: String(orderId) })))
      return { end: 'completed', outcome: 'executed', result, effects }
    },
  }
}

const rejectedExits = (task: TpSlTask, error: string): Exit[] =>
  wantedExits(task.data).map(({ leg }) => ({ leg, orderId: null, state: 'missing', error }))

export const marketKey = (symbol: string): string => assetKey('spot', symbol)
