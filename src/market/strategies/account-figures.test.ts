import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAccount } from './account.ts'
import { figuresOf } from './account-figures.ts'
import { openGuards } from './guards.ts'
import type { StrategyRun } from './strategy-run.ts'

const run = (marks: [string, bigint][]): StrategyRun => ({
  account: {
    ...openAccount(990_000_000n),
    feesMicros: 2_000_000n,
    fundingMicros: -500_000n,
    spentMicros: 400_000_000n,
    positions: new Map([
      [
        'ETH',
        {
          isLong: false,
          sizeUnits: 2_000n,
          costMicros: 400_000_000n,
          leverage: 2,
          isCross: true,
          openedMs: 0,
          targetFromMs: 0,
          feesMicros: 0n,
          fundingMicros: 0n,
          stop: { priceUnits: 210_000_000_000n, isMarket: true },
        },
      ],
    ]),
  },
  guards: openGuards(1_000_000_000n, 0),
  marks: new Map(marks),
  pending: [],
  resting: [],
})
const terms = { decimals: { ETH: 4 }, initialMicros: 1_000_000_000n }

test('figures are those of the prices that were read last', () => {
  const figures = figuresOf(run([['ETH', 190_000_000_000n]]), terms)
  assert.deepEqual(figures?.positions, [
    {
      asset: 'ETH',
      side: 'short',
      size: '0.2',
      entry_price: '2000',
      mark_price: '1900',
      unrealized_pnl_usd: '20',
      stop_price: '2100',
      target_price: null,
      opened_at: '1970-01-01T00:00:00.000Z',
    },
  ])
  assert.deepEqual(figures?.result, {
    realized_usd: '-10',
    unrealized_usd: '20',
    fees_usd: '2',
    funding_usd: '-0.5',
  })
  assert.deepEqual([figures?.equityMicros, figures?.spentMicros], [1_010_000_000n, 400_000_000n])
})

test('without a price there is no unrealized result, and without the market no figure', () => {
  const unpriced = figuresOf(run([]), terms)
  assert.deepEqual([unpriced?.result.unrealized_usd, unpriced?.equityMicros], [null, undefined])
  assert.equal(figuresOf(run([]), { ...terms, decimals: {} }), undefined)
})
