import { assertExit, assertTick, assertWorth } from '#engines/venue/orders/order-checks.ts'
import { type PlacedExits, wantedExits } from '#engines/venue/orders/order-task.ts'
import { completePlacement, exitsBefore, exitsPlan, exitsSearch } from '#engines/venue/orders/place-exits.ts'
import { rereadBalances } from '#engines/venue/orders/read-after-write.ts'
import { requireAgent, tradeDeadlineMs } from '#engines/venue/orders/require-trading-key.ts'
import { type VenueDriverDeps, venueDriver } from '#engines/venue/orders/venue-effect.ts'
import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { fromUnits } from '#kernel/money/money.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { oneEffect } from '#kernel/task/effect-steps.ts'
import type { EndResult, TaskView } from '#kernel/task/task.ts'
import type { SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { baseTaskData, spotAction } from './buy-and-sell.ts'
import type { SpotInput } from './contract.ts'
import type { SpotDeps } from './deps.ts'
import { freeOf, insufficientHolding, smallestLot } from './free-balance.ts'
import type { GatewayExit, SpotOrderTaskData } from './gateway-triggers.ts'
import { midOf, requireKnownSpotMarket } from './spot-markets.ts'
import { assertTriggerLimit, insertTriggers, triggerId } from './trigger-store.ts'

/** The venue may hold a single exit of a spot balance; the gateway holds an OCO pair. */

type TpSlInput = SpotInput<'tpSl'>

type TpSlTaskData = SpotOrderTaskData & {
  /** Whether the exit sells the balance that is free when its trigger fires. */
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
      return { first: 'sign', deadlineMs: tradeDeadlineMs, data }
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

/** Returns the size of the exits, rounded to lots; throws if the free balance does not cover it. */
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
    // Data of exits have the side of the past purchase; the exits themselves are sales.
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

/** Ends the task with its triggers inserted in the same commit. */
function gatewayTriggersResult(
  task: TpSlTask,
  exits: readonly GatewayExit[],
  at: Date,
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
        executionId: task.executionId,
        symbol,
        exits,
        entry: null,
        at,
        size: sells_all ? null : size,
      }),
  }
}

type TpSlStepDeps = VenueDriverDeps & Pick<SpotDeps, 'db' | 'venue' | 'pricing'>

export const tpSlSteps = (deps: TpSlStepDeps) =>
  oneEffect({
    driver: venueDriver<TpSlTaskData, PlacedExits>(deps, {
      actionKey: 'exits',
      search: (task) =>
        exitsSearch(deps.venue, task, {
          legs: wantedExits(task.data).map(({ leg }) => leg),
          placed: task.data.placed,
        }),
      before: (task) => exitsBefore(deps, task),
      // The venue may reject triggers in this market, and the gateway then holds those exits.
      onRejected: (task, { type }, { now }) =>
        type === 'rejected' ? gatewayTriggersResult(task, wantedPrices(task), now) : undefined,
    }),
    plan: (task, { now }) =>
      task.data.gateway_exits.length > 0
        ? gatewayTriggersResult(task, task.data.gateway_exits, now)
        : exitsPlan(task, deps.pricing, { size: task.data.size, grouping: 'none' }),
    async settle(task, found, { signal, now }) {
      const { placed } = task.data
      const { exits, waiting } = await completePlacement(deps.venue, task, { found, placed, signal })
      if (waiting) return deps.signedActions.waitForRecords(task, 'confirm', { placed: waiting })
      const missing = exits.filter(({ state }) => state === 'missing').map(({ leg }) => leg)
      if (missing.length > 0)
        return gatewayTriggersResult(
          task,
          wantedPrices(task).filter(({ leg }) => missing.includes(leg)),
          now,
        )
      const result = exitIds(exits.map(({ leg, orderId }) => ({ leg, id: String(orderId) })))
      return { end: 'completed', outcome: 'executed', result }
    },
  })

const wantedPrices = ({ data }: TpSlTask): GatewayExit[] =>
  wantedExits(data).map(({ leg, wanted: { price } }) => ({ leg, price }))
