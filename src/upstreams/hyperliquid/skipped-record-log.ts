import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'

/** Counts upstream records that cannot be parsed, and logs one per list and minute. */

const logEveryMs = 60_000

const fieldsOf = (record: unknown): string[] =>
  typeof record === 'object' && record !== null ? Object.keys(record).slice(0, 20) : [typeof record]

export function createSkippedRecords({ clock, log }: { clock: Clock; log: Log }) {
  const loggedMs = new Map<string, number>()
  let count = 0
  return {
    count: () => count,
    onSkipped(list: string, record: unknown): void {
      count += 1
      const nowMs = clock.now().getTime()
      if (nowMs - (loggedMs.get(list) ?? Number.NEGATIVE_INFINITY) < logEveryMs) return
      loggedMs.set(list, nowMs)
      log.warn({ list, fields: fieldsOf(record) }, 'venue record skipped: unknown form')
    },
  }
}
