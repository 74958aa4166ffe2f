import { type ActPlan, cloidOf } from '#features/venue/act.ts'
import type { Exit, ExitLeg } from '#features/venue/bracket.ts'
import { completeExits, exitsOfReply, type PlacedExits } from '#features/venue/entry-outcome.ts'
import { exitOrder } from '#features/venue/exits.ts'
import { memoryOf, wantedExits } from '#features/venue/memory.ts'
import { gatherEvidence } from '#features/venue/order-evidence.ts'
import { factsOf, failedBy, planOf, refusedBy } from '#features/venue/place.ts'
import { rereadBalances } from '#features/venue/read-after-write.ts'
import { assetKey } from '#features/venue/symbol.ts'
import { aheadOf, demandAgent, tradeMs } from '#features/venue/trade.ts'
import { demandExit, demandTick, demandWorth } from '#features/venue/wish.ts'
import type { Caller } from '#kernel/caller.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { invalid } from '#kernel/fault.ts'
import { fromUnits } from '#kernel/money.ts'
import type { Admission, EffectUpdate, JsonObject, Step, StepResult, TaskView } from '#kernel/task.ts'
import type { LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { freeOf, midOf, smallestLot, spotNamed, tooLittle } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import { memoryFor, type SpotMemory, spotAction, spotData } from './trade.ts'
import { demandRoom, keepTriggers, triggerId } from './triggers.ts'

/** Exits on a holding. One of them may rest at the venue; of a pair one has to end the other, so the gateway keeps it. */

export type TpSlInput = { asset: string; size?: string; tp_price?: string; sl_price?: string }

/** `all`: whatever is free when the price is reached. */
type TpSlMemory = SpotMemory & { all: boolean }

function exitsWanted(input: TpSlInput): { leg: ExitLeg; price: string }[] {
  const exits = (['tp', 'sl'] as const).flatMap((leg) => {
    const price = input[`${leg}_price`]
    return price === undefined ? [] : [{ leg, price }]
  })
  if (exits.length > 0) return exits
  throw invalid('body.tp_price', 'missing', 'At least one of tp_price and sl_price is required', {
    fields: ['tp_price', 'sl_price'],
  })
}

export const admitTpSl = (needs: SpotNeeds, input: TpSlInput, { userId }: Pick<Caller, 'userId'>) =>
  rereadBalances(needs, userId, () => admitOnce(needs, input, userId))

async function admitOnce(needs: SpotNeeds, input: TpSlInput, userId: string): Promise<Admission> {
  const { venue, pricing, policy, clock, limits, keeper } = needs
  const exits = exitsWanted(input)
  const market = await spotNamed(venue, input.asset)
  for (const { leg, price } of exits) demandTick(price, market, `body.${leg}_price`, pricing)
  const [account, agent] = await Promise.all([needs.evmAddressOf(userId), demandAgent(needs, userId)])
  const [balances, state, mids] = await Promise.all([
    venue.spotBalances(account, [market.base]),
    venue.account(account),
    venue.mids(),
  ])
  const reference = midOf(mids, market)
  for (const { leg, price } of exits)
    demandExit({ leg, price, isBuy: true, reference, field: `body.${leg}_price` })
  const free = freeOf(balances, market.base)
  const size = pricing.roundSize(input.size ?? free, market)
  const lot = fromUnits(1n, market.sizeDecimals)
  if (compareDecimals(size, '0') === 0)
    throw tooLittle(market, { what: 'The exit', required: lot, free, note: smallestLot(lot) })
  if (compareDecimals(size, free) > 0) throw tooLittle(market, { what: 'The exit', required: size, free })
  const lowest = exits.reduce(
    (low, { price }) => (compareDecimals(price, low) < 0 ? price : low),
    exits[0]!.price,
  )
  demandWorth({ size, price: lowest, minimum: limits.minOrderUsd, field: 'body.size' }, pricing)
  const action = spotAction(needs, {
    userId,
    operation: 'spot_tp_sl',
    symbol: market.symbol,
    usdMicros: 0n,
    exit: true,
  })
  await policy.check(action)
  await demandRoom(needs.on, userId)
  const [only] = exits
  const atVenue = keeper === 'venue' && exits.length === 1
  const wanted = (leg: ExitLeg) =>
    atVenue && only?.leg === leg ? { price: only.price, isMarket: true } : null
  const memory: TpSlMemory = {
    ...memoryFor(
      { operation: 'spot_tp_sl', market, account, agent: agent.address, sinceMs: state.timeMs },
      clock,
    ),
    // The exits stand on the other side of a purchase, which here lies in the past.
    is_buy: true,
    size,
    price: reference,
    tif: 'ioc',
    exit: true,
    usd_micros: '0',
    tp: wanted('tp'),
    sl: wanted('sl'),
    kept: atVenue ? [] : exits,
    all: input.size === undefined,
    ahead_ms: aheadOf(clock, state.timeMs),
  }
  return {
    first: 'begin',
    deadlineMs: tradeMs,
    data: spotData(memory),
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}

const idsOf = (exits: readonly { leg: ExitLeg; id: string }[], leg: ExitLeg) =>
  exits.filter((each) => each.leg === leg).map(({ id }) => id)

const toldOf = (exits: readonly { leg: ExitLeg; id: string }[]) => ({
  tp_oids: idsOf(exits, 'tp'),
  sl_oids: idsOf(exits, 'sl'),
})

/** Kept by the gateway from the commit that ends the task. */
function kept(
  task: TaskView,
  now: Date,
  exits: SpotMemory['kept'],
  result: Partial<StepResult> = {},
): StepResult {
  const { symbol, size, all } = memoryOf(task) as TpSlMemory
  return {
    end: 'completed',
    outcome: 'executed',
    result: toldOf(exits.map(({ leg }) => ({ leg, id: triggerId(task.id, leg) }))),
    also: (tx) =>
      keepTriggers(tx, {
        userId: task.userId,
        taskId: task.id,
        symbol,
        exits,
        parent: null,
        at: now,
        size: all ? null : size,
      }),
    ...result,
  } as StepResult
}

type Needs = Pick<SpotNeeds, 'acts' | 'venue' | 'pricing' | 'refusals' | 'agentLost'>

export function settingTriggers(needs: Needs): Record<'begin' | 'confirm', Step> {
  const { acts, venue, pricing } = needs

  const settlePlacement = (task: TaskView, signal: AbortSignal) => {
    const { account, since_ms: sinceMs } = memoryOf(task)
    const legs = wantedExits(memoryOf(task)).map(({ leg }) => leg)
    return acts.settle<Exit[]>({
      task,
      leg: 'exits',
      signal,
      read: (said: LegStatus[]) => (said.length === legs.length ? exitsOfReply(legs, said) : undefined),
      async look({ allRecords }) {
        const evidence = gatherEvidence(venue, { account, sinceMs, allRecords })
        const found = await Promise.all(legs.map((leg) => evidence.find({ cloid: cloidOf(task.id, leg) })))
        return found.some((each) => each !== undefined) ? exitsOfReply(legs, []) : undefined
      },
    })
  }

  return {
    async begin(task, { now }) {
      const memory = memoryOf(task) as TpSlMemory
      if (memory.kept.length > 0) return kept(task, now, memory.kept)
      const orders = wantedExits(memory).map((exit) =>
        exitOrder(task.id, memory, { ...exit, size: memory.size, name: exit.leg }, pricing),
      )
      const legs = wantedExits(memory).map(({ leg }) => leg)
      const plan: ActPlan = {
        leg: 'exits',
        ...planOf(memory),
        facts: factsOf(memory),
        action: { type: 'order', orders, grouping: 'none' },
        notes: orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: memory.symbol })),
      }
      return acts.intend(task, plan, { now, next: 'confirm', refused: (fault) => failedBy(fault) })
    },

    async confirm(task, { now, signal }) {
      const { account } = memoryOf(task)
      const wanted = wantedExits(memoryOf(task))
      let effects: EffectUpdate[] = []
      let placed = task.data.placed as unknown as PlacedExits | undefined
      if (!placed) {
        const verdict = await settlePlacement(task, signal)
        effects = verdict.effects
        if (verdict.is === 'doubt') return acts.wait(task, 'confirm', verdict)
        if (verdict.is === 'dead') return refusedBy(needs, task, verdict)
        placed = {
          exits: verdict.is === 'done' ? verdict.value : refusedExits(task, verdict.message),
          landedAtMs: await venue.timeMs(account),
        }
      }
      const { exits, isComplete } = await completeExits(venue, task, { ...placed, signal })
      if (!isComplete) {
        const waiting = acts.wait(task, 'confirm', { effects })
        const known: PlacedExits = { ...placed, exits }
        return { ...waiting, data: { ...waiting.data, placed: known as unknown as JsonObject } }
      }
      const missing = exits.filter(({ state }) => state === 'gone').map(({ leg }) => leg)
      // The venue may turn out to take no triggers for this market: then the gateway keeps the exit.
      if (missing.length > 0)
        return kept(
          task,
          now,
          wanted
            .filter(({ leg }) => missing.includes(leg))
            .map(({ leg, wanted: { price } }) => ({ leg, price })),
          { effects },
        )
      const result = toldOf(exits.map(({ leg, orderId }) => ({ leg, id: String(orderId) })))
      return { end: 'completed', outcome: 'executed', result, effects }
    },
  }
}

const refusedExits = (task: TaskView, error: string): Exit[] =>
  wantedExits(memoryOf(task)).map(({ leg }) => ({ leg, orderId: null, state: 'gone', error }))

export const marketKey = (symbol: string): string => assetKey('spot', symbol)
