import { later } from '#kernel/clock.ts'
import type { StrategyVersionRow } from '#store/tables/strategies.ts'

/** Decides which due slot of a strategy runs, which slots are skipped, and which comes next. */

/** Returns the first slot of a calendar after a time; undefined if the calendar has no later slot. */
export type NextSlot = (calendar: object, after: Date) => Date | undefined
export type SlotRules = Pick<StrategyVersionRow, 'calendar' | 'on_missed' | 'catch_up_seconds'>
export type DueSlots = SlotRules & {
  next_at: Date
  following_at: Date | null
  /** Whether the run of an earlier slot has not ended. */
  isRunning: boolean
}
export type SkippedSlots = { first: Date; last: Date; count: number }
export type SlotPlan = {
  run?: Date
  /** The slot that would run, if the run of an earlier slot had ended. */
  overlap?: Date
  missed?: SkippedSlots
  next?: Date
}

/** A slot that is served within this time counts as on time, since the instance may have restarted. */
export const punctualMs = 60_000
/**
 * The most missed slots that are counted one by one; after these, slots older than a day are left out of the count. The
 * number is limited because the counting blocks the process while the rows of up to 200 strategies are locked.
 */
const countedMax = 2_000
const dayMs = 86_400_000

/** Returns a strategy's first slot after a time; undefined without a calendar, which a draft may lack. */
export const slotAfter = (
  { calendar }: Pick<SlotRules, 'calendar'>,
  after: Date,
  nextSlot: NextSlot,
): Date | undefined => (calendar === null ? undefined : nextSlot(calendar, after))

/**
 * Plans the slots that are due. Only the newest may run, if it is on time or recent enough to be made up for; the
 * others are skipped together. A next slot is planned even after the last allowed run, because runs are counted when
 * they end; the end of the last one completes the strategy.
 */
export function planSlots(due: DueSlots, now: Date, nextSlot: NextSlot): SlotPlan {
  let slot = due.next_at
  let missed: SkippedSlots | undefined
  let next = due.following_at ?? slotAfter(due, slot, nextSlot)
  while (next && next <= now) {
    missed = withMissed(missed, slot)
    slot = next
    const dayBefore = later(now, -dayMs)
    next = slotAfter(due, missed.count === countedMax && dayBefore > slot ? dayBefore : slot, nextSlot)
  }
  const following = next && { next }
  const lateMsMax = due.on_missed === 'run_latest' ? due.catch_up_seconds * 1000 : 0
  if (now.getTime() - slot.getTime() > Math.max(punctualMs, lateMsMax))
    return { missed: withMissed(missed, slot), ...following }
  const skipped = missed && { missed }
  if (due.isRunning) return { overlap: slot, ...skipped, ...following }
  return { run: slot, ...skipped, ...following }
}

export const withMissed = (missed: SkippedSlots | undefined, slot: Date): SkippedSlots => ({
  first: missed?.first ?? slot,
  last: slot,
  count: (missed?.count ?? 0) + 1,
})
