import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { openRun } from '#market/strategies/strategy-run.ts'
import { type LiveDeps, readFunding } from './live.ts'
import { liveCursorOf, storedCursor } from './live-cursor.ts'

const [hourMs, openedMs] = [3_600_000, Date.parse('2026-11-01T12:00:00Z')]
const position = {
  isLong: true,
  sizeUnits: 1_000n,
  costMicros: 1_000_000_000n,
  leverage: 1,
  isCross: false,
  openedMs,
  targetFromMs: openedMs,
  feesMicros: 0n,
  fundingMicros: 0n,
}
const flat = openRun(1_000_000_000n, openedMs)
const positions = new Map(['BTC', 'ETH'].map((asset) => [asset, position]))
const account = {
  run: { ...flat, account: { ...flat.account, positions } },
  cursor: storedCursor(liveCursorOf({}, openedMs)),
}
const read = (funding: LiveDeps['funding']) =>
  readFunding({ funding }, { account, terms: { userId: 'user' }, nowMs: openedMs + hourMs + 90_000 })
const rates = async () => [{ atMs: openedMs + hourMs, rate: 0.0001 }]

test('a look has the funding of all its markets, or goes on without any and leaves it to the next look', async () => {
  assert.deepEqual(
    (await read(rates)).map(({ asset, atMs }) => [asset, atMs - openedMs]),
    [
      ['BTC', hourMs],
      ['ETH', hourMs],
    ],
  )
  for (const code of ['unavailable', 'upstream_changed'] as const)
    assert.deepEqual(
      await read((asset) => (asset === 'ETH' ? Promise.reject(new Fault(code, 'no rates')) : rates())),
      [],
    )
  const hangs = new Promise<never>(() => undefined)
  assert.deepEqual(await read((asset) => (asset === 'ETH' ? hangs : rates())), [])
  await assert.rejects(
    read(() => Promise.reject(new TypeError('a mistake of ours'))),
    TypeError,
  )
})
