import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { readAllPages } from './read-all-pages.ts'

type Entry = { atMs: number; id: number }
const pageMax = 500
const updates = 'updates' as const

/** As the venue answers: the oldest first from that time on, and at most one page. */
const venueWith =
  (entries: readonly Entry[]) =>
  async (sinceMs: number): Promise<Entry[]> =>
    entries.filter(({ atMs }) => atMs >= sinceMs).slice(0, pageMax)

const entriesAt = (times: readonly number[]): Entry[] => times.map((atMs, id) => ({ atMs, id }))

test('a list of several pages is read whole, and no entry twice', async () => {
  // Some timestamps span two pages.
  const entries = entriesAt(Array.from({ length: 1_800 }, (_, at) => Math.floor(at / 7)))
  assert.deepEqual(await readAllPages(venueWith(entries), 0, updates), entries)
})

test('a timestamp that fills a page is read again in full', async () => {
  const entries = entriesAt([...Array.from({ length: pageMax + 1 }, () => 5), 6, 7])
  const isUnavailable = (fault: unknown) => fault instanceof Fault && fault.code === 'unavailable'
  await assert.rejects(readAllPages(venueWith(entries), 0, updates), isUnavailable)
  await assert.rejects(readAllPages(venueWith(entries), 5, updates), isUnavailable)
})

test('a timestamp that begins within a page is read with the next one', async () => {
  const entries = entriesAt([
    ...Array.from({ length: 300 }, () => 4),
    ...Array.from({ length: 400 }, () => 5),
    6,
  ])
  assert.deepEqual(await readAllPages(venueWith(entries), 0, updates), entries)
})

test('a timestamp with as many fills as one answer holds is complete', async () => {
  const entries = entriesAt(Array.from({ length: 600 }, () => 5))
  assert.deepEqual(await readAllPages(async () => entries, 0, 'fills'), entries)
})
