import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findAtVenue } from './find-forgotten-executions.ts'

const pageMax = 2_000

/** The accounts that are named as read in part, where each has made so many fills. */
const unlistedOf = async (fillsByAccount: Record<string, number>) => {
  const accounts = Object.keys(fillsByAccount).map((account) => ({
    account,
    user_id: 'u',
    checks_balances: false,
    baseline_at_ms: '0',
    reconciled_through_ms: '0',
  }))
  const venue = {
    account: async () => ({ unread: [], timeMs: 0 }),
    spotHoldings: async () => ({ balances: [], unread: [] }),
    openOrders: async () => [],
    ledgerSince: async () => [],
    fillsSince: async (account: string, sinceMs: number) =>
      Array.from({ length: fillsByAccount[account]! }, (_, at) => ({ atMs: at + 1, cause: 'liquidation' }))
        .filter(({ atMs }) => atMs >= sinceMs)
        .slice(0, pageMax),
  }
  const rows = ({ text }: { text: string }) => (text.includes('from venue_account') ? accounts : [])
  const deps = {
    db: { query: async (asked: { text: string }) => ({ rows: rows(asked) }) },
    venue,
    triggerKind: 'spot_trigger',
    store: async () => undefined,
  } as unknown as Parameters<typeof findAtVenue>[0]
  const done = new Set<string>()
  const unlisted = new Set<string>()
  await findAtVenue(deps, { point: null, signal: new AbortController().signal, done, unlisted })
  assert.equal(done.size, accounts.length)
  return [...unlisted]
}

test('an account of whose fills the venue lists the newest alone is named, and holds up no other', async () => {
  assert.deepEqual(await unlistedOf({ '0xa': 10_000, '0xb': 9_999, '0xc': 3 }), ['0xa'])
})
