import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { allTargets, type TargetDeps } from './redeem-targets.ts'
import { createVenueViews } from './venue-views.ts'

const word = (units: number): string => `0x${units.toString(16).padStart(64, '0')}`

/** A wallet that holds one outcome of each of so many markets, of which those from `firstPaying` on pay. */
function walletOf(count: number, firstPaying: number) {
  let requests = 0
  const ids = Array.from({ length: count }, (_, index) => String(index))
  const marketOf = (marketId: string): PredictionMarket =>
    ({
      marketId,
      question: marketId,
      outcomes: [{ outcomeId: `${marketId}-yes` }, { outcomeId: `${marketId}-no` }],
      payoutMicros: Number(marketId) >= firstPaying ? [1_000_000n, 0n] : null,
    }) as unknown as PredictionMarket
  const venue = {
    name: 'polymarket',
    protocolOf: () => 'v1',
    positions: async () => {
      requests += 1
      return { items: ids.map((id) => ({ marketId: id, outcomeId: `${id}-yes` })), nextCursor: null }
    },
    marketsById: async (some: readonly string[]) => {
      requests += 2
      return new Map(some.map((id) => [id, marketOf(id)]))
    },
    money: { sharesCall: (_wallet: string, _market: unknown, id: string) => ({ id }), redeemCalls: () => [] },
  }
  const deps = {
    venue,
    db: { query: async () => ({ rows: [] }) },
    chain: {
      views: async (calls: { id: string }[]) => ({
        head: { number: 1n },
        results: calls.map(({ id }) => ({ success: true, data: word(id.endsWith('-yes') ? 7 : 0) })),
      }),
      simulate: async () => ({ ok: true }),
    },
    views: createVenueViews(venue as unknown as Parameters<typeof createVenueViews>[0], () => 0),
  } as unknown as TargetDeps
  return { targets: () => allTargets(deps, 'ada', '0x1'), requests: () => requests }
}

test('markets are read until ten of them pay', async () => {
  const wallet = walletOf(2_000, 45)
  const targets = await wallet.targets()
  assert.deepEqual(
    targets.map(({ market_id }) => market_id),
    ['45', '46', '47', '48', '49', '50', '51', '52', '53', '54'],
  )
  assert.equal(wallet.requests(), 5)
})

test('every request counts towards the share of the user, and what was found with it is redeemed', async () => {
  const dusty = walletOf(2_000, 2_000)
  const isLimited = (fault: unknown) => fault instanceof Fault && fault.code === 'rate_limited'
  await assert.rejects(dusty.targets(), isLimited)
  assert.ok(dusty.requests() <= 30, `${dusty.requests()} requests`)
})
