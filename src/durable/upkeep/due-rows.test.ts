import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Clock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type DueRowsDeps, type DueSource, startDueRows } from './due-rows.ts'

const now = new Date('2026-03-02T09:00:00Z')
const clock: Clock = { now: () => now }
const rowsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ id: String(n), at: now }))

/** A source of rows that are due once, and that `serve` may refuse. */
function sourceOf(count: number, assertServable: (rows: readonly { id: string }[]) => void) {
  const left = new Map(rowsOf(count).map((row) => [row.id, row]))
  const batches: number[] = []
  let polls = 0
  const done = Promise.withResolvers<void>()
  const source: DueSource<{ id: string; at: Date }> = {
    name: 'test',
    async findNext({ limit }) {
      polls += 1
      if (left.size === 0) done.resolve()
      return [...left.values()].slice(0, limit)
    },
    lockDue: async (_tx, _now, { limit, ids }) =>
      [...left.values()].filter(({ id }) => ids === null || ids.includes(id)).slice(0, limit),
    async serve(_tx, rows) {
      batches.push(rows.length)
      assertServable(rows)
      for (const { id } of rows) left.delete(id)
      return new Map(rows.map(({ id }) => [id, undefined]))
    },
  }
  return { source, batches, left, done: done.promise, polls: () => polls }
}

const depsOf = (run: DueRowsDeps['transactions']['run']): DueRowsDeps => ({
  transactions: { run } as DueRowsDeps['transactions'],
  notifier: { on: () => ({ [Symbol.dispose]() {} }) },
  clock,
  log: silentLog,
  isOnDuty: () => true,
  claimNow() {},
})
const run: DueRowsDeps['transactions']['run'] = (work) => work({} as Tx)
const sessionEnded = Object.assign(new Error('terminating connection due to idle-in-transaction timeout'), {
  code: '25P03',
})

describe('rows that are due', () => {
  test('a batch whose session the database ends is served in halves', async () => {
    const { source, batches, left, done } = sourceOf(200, (rows) => {
      if (rows.length > 50) throw sessionEnded
    })
    await using _serving = startDueRows(depsOf(run), source)
    await done
    assert.deepEqual(batches, [200, 100, 50, 50, 100, 50, 50])
    assert.equal(left.size, 0)
  })

  test('a database that is away ends the poll, and leaves out no row', async () => {
    const asked = Promise.withResolvers<void>()
    let transactions = 0
    const away = Object.assign(new Error('the database is away'), { code: 'ECONNREFUSED' })
    const { source, left, batches } = sourceOf(200, () => {
      throw away
    })
    const log = { ...silentLog, warn: () => asked.resolve() }
    const goAway: DueRowsDeps['transactions']['run'] = (work) => {
      transactions += 1
      return transactions === 1 ? run(work) : Promise.reject(away)
    }
    await using _serving = startDueRows({ ...depsOf(goAway), log }, source)
    await asked.promise
    assert.deepEqual([transactions, batches, left.size], [2, [200], 200])
  })
})
