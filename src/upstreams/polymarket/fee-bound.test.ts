import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builderFeeUnits } from '#kernel/money/builder-fee.ts'
import type { TakerFee } from '#kernel/money/prediction-views.ts'
import { cashWithin, highestOrderFee } from './fee-bound.ts'
import { takerFeeUnits } from './taker-fee.ts'

const dollar = 1_000_000n
const tickOf = fc.constantFrom(100_000n, 10_000n, 5_000n, 2_500n, 1_000n, 100n)
const feeOf = fc.record(
  {
    rate: fc.integer({ min: 0, max: 3_000 }).map((bps) => (bps / 10_000).toFixed(4)),
    exponent: fc.constantFrom('0', '0.5', '1', '1.5', '2', '3'),
    builder: fc.record({
      takerBps: fc.integer({ min: 0, max: 100 }),
      makerBps: fc.integer({ min: 0, max: 100 }),
    }),
  },
  { requiredKeys: ['rate', 'exponent'] },
)
const paidOf = (fee: TakerFee, match: { priceMicros: bigint; sizeUnits: bigint }): bigint =>
  takerFeeUnits(fee, match.priceMicros, match.sizeUnits) +
  builderFeeUnits(fee.builder, { role: 'taker', ...match })
/** Parts of a whole in thousandths, each with the part of the way from the lowest to the highest price. */
const fills = fc.array(fc.tuple(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 0, max: 1_000 })), {
  minLength: 1,
  maxLength: 6,
})

/** The price on the grid that lies so far between two others. */
const between = (low: bigint, high: bigint, tick: bigint, thousandths: number): bigint =>
  low + ((((high - low) / tick) * BigInt(thousandths) * tick) / 1_000n / tick) * tick

const parts = (whole: bigint, weights: readonly number[]): bigint[] => {
  const sum = BigInt(weights.reduce((total, weight) => total + weight, 0))
  return weights.map((weight) => (whole * BigInt(weight)) / sum)
}

test('a purchase by dollars never costs more than they are, at whatever better prices it matches', () => {
  fc.assert(
    fc.property(
      feeOf,
      tickOf,
      fc.bigInt(10_000n, 1_000_000n * dollar),
      fills,
      (fee, tickMicros, allInUnits, matches) => {
        const cash = cashWithin(allInUnits, fee, tickMicros)
        const dollars = parts(
          cash,
          matches.map(([weight]) => weight),
        )
        const fees = matches.map(([, way], index) => {
          const price = between(tickMicros, dollar - tickMicros, tickMicros, way)
          return paidOf(fee, { priceMicros: price, sizeUnits: (dollars[index]! * dollar) / price })
        })
        const paid = fees.reduce((sum, each) => sum + each, 0n)
        assert.ok(cash + paid <= allInUnits, `${cash} and ${paid} of ${allInUnits}`)
        assert.equal(cash % 10_000n, 0n)
        const terms = { type: 'market', side: 'buy', cashUnits: cash, worstPriceMicros: tickMicros } as const
        assert.ok(paid <= highestOrderFee(fee, { terms, postOnly: false }, tickMicros))
      },
    ),
    { numRuns: 2_000 },
  )
})

test('a purchase by dollars uses them up to the cent, at the price whose fee is highest', () => {
  fc.assert(
    fc.property(feeOf, tickOf, fc.bigInt(10_000n, 1_000_000n * dollar), (fee, tickMicros, allInUnits) => {
      const cashUnits = cashWithin(allInUnits, fee, tickMicros) + 10_000n
      const terms = { type: 'market', side: 'buy', cashUnits, worstPriceMicros: tickMicros } as const
      assert.ok(cashUnits + highestOrderFee(fee, { terms, postOnly: false }, tickMicros) > allInUnits)
    }),
    { numRuns: 2_000 },
  )
})

test('no match of an order of shares at its price or a better one pays more than the bound', () => {
  fc.assert(
    fc.property(
      fc.record({
        fee: feeOf,
        tickMicros: tickOf,
        side: fc.constantFrom('buy' as const, 'sell' as const),
        type: fc.constantFrom('limit' as const, 'market' as const),
        sizeUnits: fc.bigInt(10_000n, 1_000_000n * dollar),
        way: fc.integer({ min: 0, max: 1_000 }),
        matches: fills,
      }),
      ({ fee, tickMicros, side, type, sizeUnits, way, matches }) => {
        const bound = between(tickMicros, dollar - tickMicros, tickMicros, way)
        const [low, high] = side === 'buy' ? [tickMicros, bound] : [bound, dollar - tickMicros]
        const shares = parts(
          sizeUnits,
          matches.map(([weight]) => weight),
        )
        const paid = matches.reduce(
          (sum, [, at], index) =>
            sum + paidOf(fee, { priceMicros: between(low, high, tickMicros, at), sizeUnits: shares[index]! }),
          0n,
        )
        const terms =
          type === 'limit' || side === 'buy'
            ? ({ type: 'limit', side, priceMicros: bound, sizeUnits } as const)
            : ({ type: 'market', side: 'sell', sizeUnits, worstPriceMicros: bound } as const)
        assert.ok(paid <= highestOrderFee(fee, { terms, postOnly: false }, tickMicros))
        const asMaker = matches.reduce((sum, [, at], index) => {
          const match = { priceMicros: between(low, high, tickMicros, at), sizeUnits: shares[index]! }
          return sum + builderFeeUnits(fee.builder, { role: 'maker', ...match })
        }, 0n)
        assert.ok(asMaker <= highestOrderFee(fee, { terms, postOnly: true }, tickMicros))
        assert.ok(asMaker <= highestOrderFee(fee, { terms, postOnly: false }, tickMicros))
      },
    ),
    { numRuns: 2_000 },
  )
})

test('the fee of dollars is highest at the lowest price, and with a steep curve between', () => {
  const of = (exponent: string) =>
    highestOrderFee(
      { rate: '0.04', exponent },
      {
        terms: { type: 'market', side: 'buy', cashUnits: 100n * dollar, worstPriceMicros: 500_000n },
        postOnly: false,
      },
      10_000n,
    )
  // 100 / 0.01 * 0.04 * 0.0099
  assert.equal(of('1'), 3_960_000n)
  // 100 * 0.04 * (1 / 3) * (2 / 3) ^ 2, at a third of a dollar.
  assert.ok(of('2') >= 592_592n && of('2') <= 592_594n)
})

test('without a fee all dollars buy shares', () => {
  assert.equal(cashWithin(20n * dollar + 9_999n, null, 10_000n), 20n * dollar)
})

test('the fee of the builder counts on top, also of an order that only rests', () => {
  const fee = { rate: '0', exponent: '0', builder: { takerBps: 100, makerBps: 50 } }
  const terms = { type: 'limit', side: 'buy', priceMicros: 400_000n, sizeUnits: 100n * dollar } as const
  assert.equal(highestOrderFee(fee, { terms, postOnly: false }, 10_000n), 400_000n)
  assert.equal(highestOrderFee(fee, { terms, postOnly: true }, 10_000n), 200_000n)
  assert.equal(cashWithin(101n * dollar, fee, 10_000n), 100n * dollar)
  // A sale may match up to the highest price.
  const sale = { ...terms, side: 'sell' } as const
  assert.equal(highestOrderFee(fee, { terms: sale, postOnly: false }, 10_000n), 990_000n)
})

test('a tick that leaves no price stands for the finest one', () => {
  const fee = { rate: '0.04', exponent: '1' }
  const terms = { type: 'market', side: 'buy', cashUnits: dollar, worstPriceMicros: 500_000n } as const
  const finest = highestOrderFee(fee, { terms, postOnly: false }, 1n)
  for (const tick of [0n, -5n, dollar, 3n * dollar, 10n ** 30n])
    assert.equal(highestOrderFee(fee, { terms, postOnly: false }, tick), finest)
})
