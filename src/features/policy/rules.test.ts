import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Ask,
  judge,
  type Limits,
  loosened,
  narrow,
  placeOf,
  type Standing,
  type Tightening,
} from './rules.ts'

const vault = '0xAAaA000000000000000000000000000000000000'
const own = '0xBbBb000000000000000000000000000000000000'
const usdc = '0xCcCc000000000000000000000000000000000000'
const house: Limits = {
  perTransactionMicros: 100n,
  perDayMicros: 250n,
  chains: ['1', '8453'],
  tokens: null,
  recipients: [placeOf('8453', vault)],
}
const ask = (change: Partial<Ask> = {}): Ask => ({
  chainId: '8453',
  tokens: [usdc],
  recipients: [vault, own],
  usdMicros: 50n,
  exit: false,
  ...change,
})
const standing = (change: Partial<Standing> = {}): Standing => ({
  limits: house,
  house,
  ownAddresses: [own],
  spentMicros: 0n,
  paused: null,
  ...change,
})
const ruleOf = (asked: Ask, stands: Standing = standing()) => {
  const refusal = judge(asked, stands)
  return refusal?.code === 'policy_denied' ? refusal.rule : refusal?.code
}
const paused = { scope: 'user' as const, since: new Date(0) }
const only = (change: Partial<Limits>) => standing({ limits: { ...house, ...change } })

test('what every rule allows is allowed, in any case of an EVM address', () => {
  assert.equal(
    judge(ask({ recipients: [vault.toLowerCase(), own.toUpperCase().replace('X', 'x')] }), standing()),
    null,
  )
})

test('each rule refuses what it alone is against', () => {
  assert.equal(ruleOf(ask({ chainId: '10' })), 'chain')
  assert.equal(ruleOf(ask(), only({ tokens: [] })), 'token')
  assert.equal(ruleOf(ask(), only({ tokens: [placeOf('1', usdc)] })), 'token')
  assert.equal(ruleOf(ask({ recipients: [usdc] })), 'recipient')
  assert.equal(ruleOf(ask({ chainId: '1', recipients: [vault] })), 'recipient')
  assert.equal(ruleOf(ask({ usdMicros: -1n })), 'amount')
  assert.equal(ruleOf(ask({ usdMicros: 101n })), 'per_transaction_usd')
  assert.equal(ruleOf(ask(), standing({ spentMicros: 201n })), 'per_day_usd')
  assert.equal(ruleOf(ask(), standing({ paused })), 'trading_paused')
})

test('a pause of one venue stops what opens there, and neither exits nor what spends nothing', () => {
  const frozen = standing({ paused: { scope: 'venue', since: new Date(0), reason: 'drift' } })
  assert.equal(ruleOf(ask({ usdMicros: 1n }), frozen), 'trading_paused')
  assert.equal(judge(ask({ usdMicros: 0n }), frozen), null)
  assert.equal(judge(ask({ usdMicros: 1n, exit: true }), frozen), null)
})

test('a refusal says what is left', () => {
  const refusal = judge(ask({ usdMicros: 100n }), standing({ spentMicros: 249n }))
  assert.deepEqual(refusal && 'limit' in refusal && [refusal.limit, refusal.remaining], [
    '0.00025',
    '0.000001',
  ])
})

test('an exit passes a kill switch, spent caps and tightened lists, and still goes only where money may go', () => {
  const exit = ask({ exit: true, usdMicros: 1_000_000n })
  const closed = {
    ...house,
    chains: [],
    tokens: [],
    recipients: [],
    perTransactionMicros: 0n,
    perDayMicros: 0n,
  }
  const worst = standing({ paused, spentMicros: 1_000n, limits: closed })
  assert.equal(ruleOf(exit, worst), undefined)
  assert.equal(ruleOf({ ...exit, recipients: [usdc] }, worst), 'recipient')
  assert.equal(ruleOf({ ...exit, chainId: '10' }, worst), 'chain')
})

const micros = fc.bigInt(0n, 300n)
const tightening: fc.Arbitrary<Tightening> = fc.record({
  perTransactionMicros: fc.option(micros),
  perDayMicros: fc.option(micros),
  chains: fc.option(fc.subarray(['1', '8453', '10'])),
  tokens: fc.option(fc.subarray([placeOf('8453', usdc), placeOf('1', usdc)])),
  recipients: fc.option(fc.subarray([placeOf('8453', vault), placeOf('1', vault)])),
})
const asks = fc.record({
  chainId: fc.constantFrom('1', '8453', '10'),
  tokens: fc.subarray([usdc, vault]),
  recipients: fc.subarray([vault, own, usdc]),
  usdMicros: fc.bigInt(-5n, 300n),
  exit: fc.boolean(),
})

test('limits that a user stores never allow more than those of the platform', () => {
  fc.assert(
    fc.property(tightening, asks, micros, (stored, asked, spentMicros) => {
      const limits = narrow(house, stored)
      if (judge(asked, standing({ limits, spentMicros })) === null)
        assert.equal(judge(asked, standing({ spentMicros })), null)
    }),
  )
})

test("a stored limit above the platform's, field by field, counts as the platform's", () => {
  const wide: Tightening = {
    perTransactionMicros: 1_000n,
    perDayMicros: 2_000n,
    chains: ['8453', '10'],
    tokens: [placeOf('10', usdc)],
    recipients: [placeOf('8453', vault), placeOf('10', own)],
  }
  const listed: Limits = { ...house, tokens: [placeOf('8453', usdc)] }
  assert.deepEqual(narrow(listed, wide), {
    perTransactionMicros: 100n,
    perDayMicros: 250n,
    chains: ['8453'],
    tokens: [],
    recipients: [placeOf('8453', vault)],
  })
})

test('what does not count as loosening never allows what was refused before', () => {
  fc.assert(
    fc.property(tightening, tightening, asks, micros, (stored, wanted, asked, spentMicros) => {
      const before = narrow(house, stored)
      fc.pre(loosened(before, wanted).length === 0)
      const after = narrow(before, wanted)
      if (judge(asked, standing({ limits: before, spentMicros })) !== null)
        assert.notEqual(judge(asked, standing({ limits: after, spentMicros })), null)
    }),
  )
})

test('asking for exactly the present limits is no loosening, and one unit more is', () => {
  fc.assert(
    fc.property(tightening, (stored) => {
      const limits = narrow(house, stored)
      assert.deepEqual(loosened(limits, limits), [])
      assert.deepEqual(loosened(limits, { ...limits, perDayMicros: limits.perDayMicros + 1n }), [
        'perDayMicros',
      ])
      assert.deepEqual(loosened(limits, { ...limits, chains: [...limits.chains, '999'] }), ['chains'])
    }),
  )
})

test('no sequence of asks takes more than the cap from any 24 hours', () => {
  const day = 86_400
  const steps = fc.array(fc.record({ afterSeconds: fc.nat(day / 3), usdMicros: fc.bigInt(0n, 120n) }), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(steps, (sequence) => {
      const spent: { at: number; micros: bigint }[] = []
      const within = (from: number) =>
        spent.filter(({ at }) => at > from).reduce((sum, each) => sum + each.micros, 0n)
      let at = 0
      for (const step of sequence) {
        at += step.afterSeconds
        const asked = ask({ usdMicros: step.usdMicros })
        if (judge(asked, standing({ spentMicros: within(at - day) })) === null)
          spent.push({ at, micros: step.usdMicros })
        assert.ok(within(at - day) <= house.perDayMicros)
      }
    }),
  )
})
