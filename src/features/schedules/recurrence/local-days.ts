import { dayMs, firstInstant, localTime, startOfDay, zoneDay } from './zone.ts'

/** Returns the end of each local day from an instant on, until one is after `toMs`. */
export function localDayEnds(zone: string, fromMs: number, toMs: number): number[] {
  const ends: number[] = []
  for (let day = startOfDay(localTime(zone, fromMs)) + dayMs; ; day += dayMs) {
    const end = firstInstant(zoneDay(zone, day), day)
    if (end <= fromMs || end === ends.at(-1)) continue
    ends.push(end)
    if (end > toMs) return ends
  }
}
