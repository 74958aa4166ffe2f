/** Billing periods, in whole seconds of UTC. */

type Interval = 'month' | 'year'

const daysIn = (year: number, month: number): number => new Date(Date.UTC(year, month + 1, 0)).getUTCDate()

/** Returns the end of the period that begins at `start`; a day that its month lacks becomes the month's last. */
export function periodEnd(start: number, interval: Interval, anchor: number): number {
  const from = new Date(start * 1_000)
  const day = new Date(anchor * 1_000).getUTCDate()
  const months = from.getUTCMonth() + (interval === 'month' ? 1 : 12)
  const year = from.getUTCFullYear() + Math.floor(months / 12)
  const month = months % 12
  const end = new Date(from)
  end.setUTCFullYear(year, month, Math.min(day, daysIn(year, month)))
  return Math.floor(end.getTime() / 1_000)
}

/** Returns the part of `cents` for what is left of a period, rounded half up. */
export function unusedPart(cents: number, period: { start: number; end: number }, now: number): number {
  const total = BigInt(period.end - period.start)
  const left = BigInt(Math.max(0, period.end - now))
  return Number((2n * BigInt(cents) * left + total) / (2n * total))
}
