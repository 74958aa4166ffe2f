import type { NewSchedule } from '#durable/upkeep/scheduler.ts'
import type { TaskKind } from '#kernel/task/task.ts'

/** One instance stores the share price once an hour, and the yield is computed from the stored prices. */

const kind = 'earn_snapshot'
const hourSeconds = 3_600
/** The id of the snapshots is fixed, so that all instances share one schedule. */
const id = '00000000-0000-7000-8000-00000000ea12'

export const snapshotSchedule = (now: Date): NewSchedule => ({
  id,
  kind,
  input: {},
  everySeconds: hourSeconds,
  firstAt: now,
})

export const createSnapshotKind = (snapshot: () => Promise<void>): TaskKind => ({
  kind,
  version: 1,
  priority: 2,
  steps: {
    async snapshot() {
      await snapshot()
      return { end: 'completed', outcome: 'executed', result: {} }
    },
  },
  retry: { attemptsMax: 20, firstMs: 1_000, maxMs: 120_000 },
})
