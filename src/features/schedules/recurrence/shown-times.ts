import { LRUCache } from 'lru-cache'
import type { Calendar } from './calendar-types.ts'
import { describe, nextRuns } from './describe.ts'

/** What clients see of a calendar is cached, because each list of schedules shows the same calendars again. */

type Run = { at: string; local: string }
type Shown = { description?: string; coming?: { fromMs: number; runs: readonly Run[] } }

const cachedMax = 2_000
const cache = new LRUCache<string, Shown>({ max: cachedMax })

function cachedOf(calendar: Calendar): Shown {
  const key = JSON.stringify(calendar)
  const known = cache.get(key)
  if (known) return known
  const added: Shown = {}
  cache.set(key, added)
  return added
}

export function shownDescription(calendar: Calendar): string {
  const own = cachedOf(calendar)
  own.description ??= describe(calendar)
  return own.description
}

const shownRuns = 3

/** Returns the next three runs; they stay the same until the first of them has passed. */
export function comingRuns(calendar: Calendar, from: Date): readonly Run[] {
  const own = cachedOf(calendar)
  const fromMs = from.getTime()
  const first = own.coming?.runs[0]
  const isValid = own.coming && own.coming.fromMs <= fromMs && !(first && Date.parse(first.at) <= fromMs)
  if (own.coming && isValid) return own.coming.runs
  const runs = nextRuns(calendar, from, shownRuns)
  own.coming = { fromMs, runs }
  return runs
}
