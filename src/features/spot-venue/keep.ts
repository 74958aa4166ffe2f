import { cloidOf, readLagMs } from '#features/venue/act.ts'
import { type ExitLeg, sumOf } from '#features/venue/bracket.ts'
import { memoryOf } from '#features/venue/memory.ts'
import type { PlaceNeeds } from '#features/venue/place.ts'
import type { Standing } from '#features/venue/report.ts'
import { later } from '#kernel/clock.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { JsonObject, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import { spotNamed } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import type { SpotMemory } from './trade.ts'
import { type ArmedTrigger, armedIn, dropArmed, keepTriggers, triggerId } from './triggers.ts'

/** The exits of a purchase, where the gateway keeps them: all of them, or those that the venue did not take. */

export const spotMemoryOf = (task: TaskView) => memoryOf(task) as SpotMemory

export type KeptExit = { leg: ExitLeg; price: string }

export function withKept(
  task: TaskView,
  { now }: StepContext,
  { entry, exits: placed, fills }: Standing,
  result: StepResult,
  kept: readonly KeptExit[],
): StepResult {
  if (kept.length === 0 || !('end' in result)) return result
  const { symbol, size: wanted, price } = spotMemoryOf(task)
  const rests = entry.status === 'resting'
  const orderId = entry.orderId === null ? null : String(entry.orderId)
  const told = (result.result ?? {}) as JsonObject & { legs?: JsonObject[] }
  const idsOf = (leg: ExitLeg) => kept.filter((each) => each.leg === leg).map(() => triggerId(task.id, leg))
  const standing = placed.filter(({ state }) => state !== 'gone').map(({ leg, orderId: id }) => ({ leg, id }))
  const all = (leg: ExitLeg) => [
    ...standing.filter((each) => each.leg === leg && each.id !== null).map(({ id }) => String(id)),
    ...idsOf(leg),
  ]
  const keptLegs = kept.map(({ leg }) => ({
    role: leg,
    order_id: triggerId(task.id, leg),
    status: rests ? 'waiting' : 'standing',
    error: null,
  }))
  const legs = [...(told.legs ?? []).filter(({ status }) => status !== 'gone'), ...keptLegs]
  return {
    ...result,
    result: { ...told, tp_oids: all('tp'), sl_oids: all('sl'), legs },
    also: (tx) =>
      keepTriggers(tx, {
        userId: task.userId,
        taskId: task.id,
        symbol,
        exits: kept,
        at: now,
        size: rests ? wanted : sumOf(fills).size,
        parent: rests ? { cloid: cloidOf(task.id, 'entry'), orderId, price } : null,
      }),
  }
}

const scale = 18

/** Whether any read of the balance shows the purchase of this exit by now; an entry that rested filled at an unknown time. */
const isVisible = ({ parent, created_at }: ArmedTrigger, now: Date): boolean =>
  parent === null && later(created_at, readLagMs) <= now

type Concluding = Pick<SpotNeeds, 'on' | 'venue' | 'pricing'>

/**
 * A purchase gets its exits; a sale that leaves nothing of the holding drops the exits of it. Where the balance may be
 * older than a purchase or than the sale, it is read again once every read is newer than both.
 */
export function concluding({ on, venue, pricing }: Concluding): NonNullable<PlaceNeeds['conclude']> {
  const isGone = async ({ account, symbol }: SpotMemory): Promise<boolean> => {
    const market = await spotNamed(venue, symbol)
    const balances = await venue.spotBalances(account, [market.base])
    const total = balances.find(({ coin }) => coin === market.base)?.total ?? '0'
    return pricing.roundSize(total, market) === '0'
  }
  const isSoldOut = async ({ held_before, symbol }: SpotMemory, { fills }: Standing): Promise<boolean> => {
    if (!held_before) return false
    const left = toUnits(held_before.total, scale) - toUnits(sumOf(fills).size, scale)
    return left <= 0n || pricing.roundSize(fromUnits(left, scale), await spotNamed(venue, symbol)) === '0'
  }
  return async (task, context, standing, result) => {
    const memory = spotMemoryOf(task)
    if (memory.is_buy) return withKept(task, context, standing, result, memory.kept)
    if (standing.entry.status === 'resting') return result
    const checked = task.data.exits_checked as string[] | undefined
    const dropping = (ids: readonly string[]): StepResult => ({ ...result, also: (tx) => dropArmed(tx, ids) })
    if (checked) return (await isGone(memory)) ? dropping(checked) : result
    // Listed before the balance is read: what is bought in between keeps its exits.
    const armed = await armedIn(on, task.userId, memory.symbol)
    if (armed.length === 0) return result
    const ids = armed.map(({ id }) => id)
    const isNoneSeen = await isGone(memory)
    if (isNoneSeen && armed.every((each) => isVisible(each, context.now))) return dropping(ids)
    if (!isNoneSeen && !(await isSoldOut(memory, standing))) return result
    return {
      park: { afterMs: readLagMs, next: 'confirm' },
      state: 'settling',
      data: { exits_checked: ids },
      ...(result.effects && { effects: result.effects }),
    }
  }
}
