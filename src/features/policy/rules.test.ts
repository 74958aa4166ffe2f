import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  chainAddressOf,
  evaluate,
  intersect,
  type Limits,
  type Overrides,
  type PolicyRequest,
  type PolicyState,
  widenedFields,
} from './rules.ts'

const vault = '0xAAaA000000000000000000000000000000000000'
const own = '0xBbBb000000000000000000000000000000000000'
const usdc = '0xCcCc000000000000000000000000000000000000'
const platformLimits: Limits = {
  perTransactionMicros: 100n,
  perDayMicros: 250n,
  chains: ['1', '8453'],
  tokens: null,
  recipients: [chainAddressOf('8453', vault)],
}
const ask = (change: Partial<PolicyRequest> = {}): PolicyRequest => ({
  chainId: '8453',
  tokens: [usdc],
  recipients: [vault, own],
  usdMicros: 50n,
  exit: false,
  ...change,
})
const policyState = (change: Partial<PolicyState> = {}): PolicyState => ({
  limits: platformLimits,
  platformLimits,
  ownAddresses: [own],
  spentMicros: 0n,
  paused: null,
  ...change,
})
const ruleOf = (asked: PolicyRequest, state: PolicyState = policyState()) => {
  const refusal = evaluate(asked, state)
  return refusal?.code === 'policy_denied' ? refusal.rule : refusal?.code
}
const paused = { scope: 'user' as const, since: new Date(0) }
const only = (change: Partial<Limits>) => policyState({ limits: { ...platformLimits, ...change } })

test('an action within every rule is allowed, in any case of an EVM address', () => {
  assert.equal(
    evaluate(ask({ recipients: [vault.toLowerCase(), own.toUpperCase().replace('X', 'x')] }), policyState()),
    null,
  )
})

test('each rule denies the action that violates only this rule', () => {
  assert.equal(ruleOf(ask({ chainId: '10' })), 'chain')
  assert.equal(ruleOf(ask(), only({ tokens: [] })), 'token')
  assert.equal(ruleOf(ask(), only({ tokens: [chainAddressOf('1', usdc)] })), 'token')
  assert.equal(ruleOf(ask({ recipients: [usdc] })), 'recipient')
  assert.equal(ruleOf(ask({ chainId: '1', recipients: [vault] })), 'recipient')
  assert.equal(ruleOf(ask({ usdMicros: -1n })), 'amount')
  assert.equal(ruleOf(ask({ usdMicros: 101n })), 'per_transaction_usd')
  assert.equal(ruleOf(ask(), policyState({ spentMicros: 201n })), 'per_day_usd')
  assert.equal(ruleOf(ask(), policyState({ paused })), 'trading_paused')
})

test('a pause of one venue stops opening orders there, and neither exits nor actions without spend', () => {
  const frozen = policyState({ paused: { scope: 'venue', since: new Date(0), reason: 'drift' } })
  assert.equal(ruleOf(ask({ usdMicros: 1n }), frozen), 'trading_paused')
  assert.equal(evaluate(ask({ usdMicros: 0n }), frozen), null)
  assert.equal(evaluate(ask({ usdMicros: 1n, exit: true }), frozen), null)
})

test('a denial states the remaining amount', () => {
  const refusal = evaluate(ask({ usdMicros: 100n }), policyState({ spentMicros: 249n }))
  assert.deepEqual(refusal && 'limit' in refusal && [refusal.limit, refusal.remaining], [
    '0.00025',
    '0.000001',
  ])
})

test('an exit passes a kill switch, spent caps and lowered lists, but only to allowed recipients', () => {
  const exit = ask({ exit: true, usdMicros: 1_000_000n })
  const closed = {
    ...platformLimits,
    chains: [],
    tokens: [],
    recipients: [],
    perTransactionMicros: 0n,
    perDayMicros: 0n,
  }
  const worst = policyState({ paused, spentMicros: 1_000n, limits: closed })
  assert.equal(ruleOf(exit, worst), undefined)
  assert.equal(ruleOf({ ...exit, recipients: [usdc] }, worst), 'recipient')
  assert.equal(ruleOf({ ...exit, chainId: '10' }, worst), 'chain')
})

const micros = fc.bigInt(0n, 300n)
const overrides: fc.Arbitrary<Overrides> = fc.record({
  perTransactionMicros: fc.option(micros),
  perDayMicros: fc.option(micros),
  chains: fc.option(fc.subarray(['1', '8453', '10'])),
  tokens: fc.option(fc.subarray([chainAddressOf('8453', usdc), chainAddressOf('1', usdc)])),
  recipients: fc.option(fc.subarray([chainAddressOf('8453', vault), chainAddressOf('1', vault)])),
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
    fc.property(overrides, asks, micros, (stored, asked, spentMicros) => {
      const limits = intersect(platformLimits, stored)
      if (evaluate(asked, policyState({ limits, spentMicros })) === null)
        assert.equal(evaluate(asked, policyState({ spentMicros })), null)
    }),
  )
})

test('a stored limit above the platform limit counts as the platform limit, field by field', () => {
  const wide: Overrides = {
    perTransactionMicros: 1_000n,
    perDayMicros: 2_000n,
    chains: ['8453', '10'],
    tokens: [chainAddressOf('10', usdc)],
    recipients: [chainAddressOf('8453', vault), chainAddressOf('10', own)],
  }
  const listed: Limits = { ...platformLimits, tokens: [chainAddressOf('8453', usdc)] }
  assert.deepEqual(intersect(listed, wide), {
    perTransactionMicros: 100n,
    perDayMicros: 250n,
    chains: ['8453'],
    tokens: [],
    recipients: [chainAddressOf('8453', vault)],
  })
})

test('a change that does not count as widening never allows an action that was denied before', () => {
  fc.assert(
    fc.property(overrides, overrides, asks, micros, (stored, wanted, asked, spentMicros) => {
      const before = intersect(platformLimits, stored)
      fc.pre(widenedFields(before, wanted).length === 0)
      const after = intersect(before, wanted)
      if (evaluate(asked, policyState({ limits: before, spentMicros })) !== null)
        assert.notEqual(evaluate(asked, policyState({ limits: after, spentMicros })), null)
    }),
  )
})

test('a request for exactly the current limits is no widening, and one unit more is', () => {
  fc.assert(
    fc.property(overrides, (stored) => {
      const limits = intersect(platformLimits, stored)
      assert.deepEqual(widenedFields(limits, limits), [])
      assert.deepEqual(widenedFields(limits, { ...limits, perDayMicros: limits.perDayMicros + 1n }), [
        'perDayMicros',
      ])
      assert.deepEqual(widenedFields(limits, { ...limits, chains: [...limits.chains, '999'] }), ['chains'])
    }),
  )
})

test('no sequence of actions spends more than the cap within any 24 hours', () => {
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
        if (evaluate(asked, policyState({ spentMicros: within(at - day) })) === null)
          spent.push({ at, micros: step.usdMicros })
        assert.ok(within(at - day) <= platformLimits.perDayMicros)
      }
    }),
  )
})
