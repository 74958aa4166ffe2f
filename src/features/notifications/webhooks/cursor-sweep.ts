import { type Queryable, query } from '#store/query.ts'
import type { UserRange } from './claims.ts'

/**
 * This module reads all cursors in rounds of bounded slices, to count webhooks and to find events that no notification
 * has announced to this instance.
 */

export type CursorCounts = { enabled: number; disabled: number; failing: number; behind: number }

export type Sweep = {
  /**
   * Counts the cursors of the next slice, and calls `claim` if one is behind its event log. Returns true after the last
   * slice of a round.
   */
  next(claim: (range: UserRange) => Promise<void>): Promise<boolean>
  counts(): CursorCounts
}

/** A statement reads at most this many cursors, which keeps it far below its time limit, however many there are. */
export const sliceMaxDefault = 10_000
/** Between two slices of one round the sweep pauses this many times as long as the reading of a slice took. */
export const slicePauseFactor = 10
const firstId = '00000000-0000-0000-0000-000000000000'
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const none: CursorCounts = { enabled: 0, disabled: 0, failing: 0, behind: 0 }

type SweepDeps = { db: Queryable; sliceMax?: number | undefined }

export function createSweep({ db, sliceMax = sliceMaxDefault }: SweepDeps): Sweep {
  let from = firstId
  let ofRound = none
  let ofLastRound = none
  return {
    async next(claim) {
      const next = await endOfSlice(db, from, sliceMax)
      const range = { from, before: next ?? lastId }
      const counts = await countCursors(db, range)
      if (counts.behind > 0) await claim(range)
      ofRound = sum(ofRound, counts)
      from = next ?? firstId
      if (next !== undefined) return false
      ofLastRound = ofRound
      ofRound = none
      return true
    },
    counts: () => ofLastRound,
  }
}

const sum = (one: CursorCounts, other: CursorCounts): CursorCounts => ({
  enabled: one.enabled + other.enabled,
  disabled: one.disabled + other.disabled,
  failing: one.failing + other.failing,
  behind: one.behind + other.behind,
})

type Statement = { text: string; values: unknown[] }

export const endOfSliceStatement = (from: string, sliceMax: number): Statement => ({
  text: 'select user_id from webhook_cursor where user_id >= $1 order by user_id offset $2 limit 1',
  values: [from, sliceMax],
})

/** The range is given for each table; otherwise PostgreSQL would read the other tables as a whole. */
export const countsStatement = ({ from, before }: UserRange): Statement => ({
  text: `
  select count(*) filter (where c.status = 'enabled') as enabled,
    count(*) filter (where c.status = 'disabled') as disabled,
    count(*) filter (where c.status = 'enabled' and c.attempts > 0) as failing,
    count(*) filter (where c.status = 'enabled' and c.retry_at is null and s.seq > c.seq and u.suspended_at is null)
      as behind
  from webhook_cursor c
    left join user_event_seq s on s.user_id = c.user_id and s.user_id >= $1 and s.user_id < $2
    left join app_user u on u.id = c.user_id and u.id >= $1 and u.id < $2
  where c.user_id >= $1 and c.user_id < $2`,
  values: [from, before],
})

async function endOfSlice(db: Queryable, from: string, sliceMax: number): Promise<string | undefined> {
  const { text, values } = endOfSliceStatement(from, sliceMax)
  return (await query<{ user_id: string }>(db, text, values))[0]?.user_id
}

async function countCursors(db: Queryable, range: UserRange): Promise<CursorCounts> {
  const { text, values } = countsStatement(range)
  const [row] = await query<Record<keyof CursorCounts, bigint>>(db, text, values)
  return {
    enabled: Number(row?.enabled ?? 0),
    disabled: Number(row?.disabled ?? 0),
    failing: Number(row?.failing ?? 0),
    behind: Number(row?.behind ?? 0),
  }
}
