import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '#kernel/contract/fault.ts'
import type { Account, Fill, Position } from '#upstreams/hyperliquid/hyperliquid.ts'
import { findPosition } from './consistent-reads.ts'
import { placedBefore } from './order-lookup.ts'

const long = { symbol: 'BTC', signedSize: '0.5' } as Position
const stateWith = (...positions: Position[]) => ({ positions, unread: [] as Account['unread'] }) as Account
const bought = { symbol: 'BTC', isBuy: true, startSize: '0', size: '0.5', atMs: 2 } as Fill
const sold = { symbol: 'BTC', isBuy: false, startSize: '0.5', size: '0.5', atMs: 3 } as Fill
const query = { account: '0xacc', symbol: 'BTC' }

/** A venue whose next read of the account is this one. */
const venueWith = (fills: Fill[], state: Account) => ({
  recentFills: async () => fills,
  account: async () => state,
})

test('a position that the next read of the account shows is found', async () => {
  const venue = venueWith([bought], stateWith(long))
  assert.equal(await findPosition(venue, query, stateWith()), long)
})

test('a position is not missing while the fills show one', async () => {
  const venue = venueWith([bought], stateWith())
  await assert.rejects(findPosition(venue, query, stateWith()), ({ code, retryable }: Fault) => {
    assert.deepEqual([code, retryable], ['unavailable', true])
    return true
  })
})

test('a position is missing where the fills closed it, or where there is none', async () => {
  for (const fills of [[], [bought, sold]])
    assert.equal(await findPosition(venueWith(fills, stateWith()), query, stateWith()), undefined)
})

test('an order that was adopted is awaited where the venue denies it, and one that nobody found is not', async () => {
  const before = (adopted: object[]) => {
    const deps = {
      venue: { order: async () => undefined },
      db: { query: async () => ({ rows: adopted }) },
    } as unknown as Parameters<typeof placedBefore>[0]
    return placedBefore(deps, { userId: 'u', data: { account: '0xacc', since_ms: 0 } }, ['0xc'])
  }
  await assert.rejects(before([{ task_id: 'a' }]), { code: 'unavailable' })
  assert.equal(await before([]), undefined)
})
