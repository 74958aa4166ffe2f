import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { OutcomeOrderAction } from '#kernel/money/prediction-actions.ts'
import type { OrderTerms } from '#kernel/money/prediction-venue.ts'
import { zero32 } from './contracts.ts'
import { orderIdOf } from './digests.ts'
import { orderAmounts } from './order-amounts.ts'
import { identityOf, saltOf, timestampOf } from './order-identity.ts'

const wallet = {
  kind: 'deposit_wallet',
  owner: `0x${'1a'.repeat(20)}`,
  wallet: `0x${'2b'.repeat(20)}`,
} as const
const outcomes = {
  v1: '45601394554497090173642354630373884477724604907691447337031201817815960365378',
  v2: String((1n << 248n) | (0xabcdefn << 120n)),
}
const builderCode = `0x${'3c'.repeat(32)}`
const grid = fc.constantFrom(10_000n, 1_000n)
const start = Date.UTC(2026, 10, 28)

const signed = fc
  .record({
    identity: fc.uuid(),
    type: fc.constantFrom('limit' as const, 'market' as const),
    side: fc.constantFrom('buy' as const, 'sell' as const),
    exchange: fc.constantFrom('standard' as const, 'neg_risk' as const, 'v3' as const),
    builder: fc.constantFrom(zero32, builderCode),
    tickMicros: grid,
    steps: fc.integer({ min: 1, max: 99 }),
    units: fc.bigInt(10_000_000n, 10_000_000_000n),
    nowMs: fc.integer({ min: start, max: start + 86_400_000 }),
    /** How long the order took to the venue, and how far its clock is off. */
    lateMs: fc.integer({ min: 0, max: 600_000 }),
    skewMs: fc.integer({ min: -60_000, max: 60_000 }),
  })
  .map((given) => {
    const { identity, type, side, exchange, builder, tickMicros, steps, units, nowMs } = given
    const priceMicros = BigInt(steps) * tickMicros
    const terms: OrderTerms =
      type === 'limit'
        ? { type, side, priceMicros, sizeUnits: units }
        : side === 'buy'
          ? { type, side, cashUnits: units, worstPriceMicros: priceMicros }
          : { type, side, sizeUnits: units, worstPriceMicros: priceMicros }
    const { makerUnits, takerUnits, sizeUnits } = orderAmounts(terms, { tickMicros, minSizeUnits: 0n })
    const outcomeId = outcomes[exchange === 'v3' ? 'v2' : 'v1']
    const action: OutcomeOrderAction = {
      type: 'order',
      exchange,
      salt: saltOf(identity),
      walletKind: wallet.kind,
      wallet: wallet.wallet,
      owner: wallet.owner,
      outcomeId,
      side,
      makerUnits,
      takerUnits,
      timestampMs: timestampOf(identity, nowMs),
      metadata: zero32,
      builder,
    }
    const createdAt = new Date(Math.floor((nowMs + given.lateMs + given.skewMs) / 1_000) * 1_000)
    const order = {
      orderId: orderIdOf(action),
      outcomeId,
      side,
      timeInForce: type === 'limit' ? ('gtc' as const) : ('fok' as const),
      sizeUnits,
      priceMicros,
      createdAt,
    }
    return { identity, order, action }
  })

test('an order that the venue lists is recognised by its identity, and by no other', () => {
  fc.assert(
    fc.property(signed, fc.uuid(), ({ identity, order }, other) => {
      fc.pre(identity !== other)
      const find = (identities: string[]) => identityOf(order, wallet, { identities, builderCode })
      assert.equal(find([other, identity]), identity)
      assert.equal(find([other]), undefined)
      const foreign = { ...wallet, wallet: `0x${'4d'.repeat(20)}` }
      assert.equal(identityOf(order, foreign, { identities: [identity], builderCode }), undefined)
      const changed = { ...order, sizeUnits: order.sizeUnits + 10_000_000n }
      assert.equal(identityOf(changed, wallet, { identities: [identity], builderCode }), undefined)
    }),
    { numRuns: 25 },
  )
})

test('salt and time follow from the identity, and the time is that of the last seconds', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.integer({ min: start, max: start * 2 }), (identity, nowMs) => {
      const salt = saltOf(identity)
      assert.ok(salt >= 0n && salt < 1n << 53n)
      assert.equal(salt, saltOf(identity))
      const at = timestampOf(identity, nowMs)
      assert.ok(at <= nowMs && at > nowMs - 10_000)
      assert.equal(timestampOf(identity, at), at)
      assert.equal(timestampOf(identity, at + 10_000), at + 10_000)
    }),
  )
})
