import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { transferOperation } from '#kernel/task/policy-action.ts'
import {
  type Change,
  chainAddressOf,
  decide,
  evaluate,
  intersect,
  type Limits,
  type Overrides,
  type PolicyRequest,
  type PolicyState,
  type Wanted,
  widenedFields,
  withChanges,
} from './rules.ts'

const vault = '0xAAaA000000000000000000000000000000000000'
const own = '0xBbBb000000000000000000000000000000000000'
const usdc = '0xCcCc000000000000000000000000000000000000'
const platformLimits: Limits = {
  perTransactionMicros: 100n,
  perDayMicros: 250n,
  chatPerDayMicros: 250n,
  chains: ['1', '8453'],
  tokens: null,
  recipients: [chainAddressOf('8453', vault)],
  approvalAboveMicros: null,
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
  chatSpentMicros: 0n,
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
  chatPerDayMicros: fc.option(micros),
  chains: fc.option(fc.subarray(['1', '8453', '10'])),
  tokens: fc.option(fc.subarray([chainAddressOf('8453', usdc), chainAddressOf('1', usdc)])),
  recipients: fc.option(fc.subarray([chainAddressOf('8453', vault), chainAddressOf('1', vault)])),
  approvalAboveMicros: fc.option(micros),
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
    chatPerDayMicros: 2_000n,
    chains: ['8453', '10'],
    tokens: [chainAddressOf('10', usdc)],
    recipients: [chainAddressOf('8453', vault), chainAddressOf('10', own)],
    approvalAboveMicros: 10n,
  }
  const listed: Limits = { ...platformLimits, tokens: [chainAddressOf('8453', usdc)] }
  const expected = { ...listed, chains: ['8453'], tokens: [], approvalAboveMicros: 10n }
  assert.deepEqual(intersect(listed, wide), expected)
})

/** Only the fields that an arbitrary user names. */
const named = (given: Overrides): Wanted =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))

test('a change that does not count as widening never allows an action that was denied before', () => {
  fc.assert(
    fc.property(overrides, overrides, asks, micros, (stored, wanted, asked, spentMicros) => {
      const before = intersect(platformLimits, stored)
      fc.pre(widenedFields(before, named(wanted)).length === 0)
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

test('a list that was lifted allows any token, and lifting it is widening', () => {
  const own = { ...none, tokens: [chainAddressOf('8453', usdc)] }
  assert.deepEqual(widenedFields(intersect(platformLimits, own), { tokens: null }), ['tokens'])
  assert.deepEqual(widenedFields(platformLimits, { tokens: null }), [])
  const lifted: Change = { id: 'a', field: 'tokens', value: null, requestedAt: at(0), effectiveAt: at(1) }
  assert.deepEqual(withChanges(own, [lifted], at(0)), { own, pending: [lifted] })
  assert.deepEqual(withChanges(own, [lifted], at(1)), { own: none, pending: [] })
})

const none: Overrides = {
  perTransactionMicros: null,
  perDayMicros: null,
  chatPerDayMicros: null,
  chains: null,
  tokens: null,
  recipients: null,
  approvalAboveMicros: null,
}
const at = (seconds: number) => new Date(seconds * 1_000)
const coolingSeconds = 100
const turn = fc.oneof(
  fc.record({ type: fc.constant('set' as const), wanted: overrides.map(named) }),
  fc.record({ type: fc.constant('cancel' as const), nth: fc.nat(4) }),
)

test('a limit is wider than before only after it has waited, and never after a cancel or a later request', () => {
  const steps = fc.array(fc.record({ afterSeconds: fc.nat(70), turn }), { maxLength: 30 })
  fc.assert(
    fc.property(steps, (sequence) => {
      let stored = { own: none, changes: [] as Change[] }
      let [seconds, ids] = [0, 0]
      /** What may still take effect, by the words of the rule alone. */
      let asked: { field: string; at: number; value: unknown; id: string }[] = []
      const limitsAt = (time: number) =>
        intersect(platformLimits, withChanges(stored.own, stored.changes, at(time)).own)
      for (const step of sequence) {
        for (let passed = 0; passed < step.afterSeconds; passed++) {
          const before = limitsAt(seconds)
          const widened = widenedFields(before, limitsAt(++seconds))
          for (const field of widened)
            assert.ok(asked.some((each) => each.field === field && each.at + coolingSeconds === seconds))
        }
        const now = withChanges(stored.own, stored.changes, at(seconds))
        const limits = limitsAt(seconds)
        if (step.turn.type === 'cancel') {
          const cancelled = now.pending[step.turn.nth]
          asked = asked.filter(({ id }) => id !== cancelled?.id)
          stored = { own: now.own, changes: now.pending.filter((each) => each !== cancelled) }
        } else {
          const { wanted } = step.turn
          const { own: tightened, raised, remaining } = decide({ ...now, limits }, wanted)
          const added = raised.map((field) => ({
            id: String(++ids),
            field,
            value: wanted[field]!,
            requestedAt: at(seconds),
            effectiveAt: at(seconds + coolingSeconds),
          }))
          asked = asked.filter(({ id }) => remaining.some((each) => each.id === id))
          asked.push(...added.map(({ id, field, value }) => ({ id, field, value, at: seconds })))
          stored = { own: tightened, changes: [...remaining, ...added] }
        }
        assert.deepEqual(widenedFields(limits, limitsAt(seconds)), [], 'nothing widens at once')
        assert.ok(stored.changes.length <= 7)
      }
    }),
  )
})

test('the same request again does not wait anew, and another one for the field does', () => {
  const limits = { ...platformLimits, perDayMicros: 10n }
  const waiting: Change = {
    id: 'a',
    field: 'perDayMicros',
    value: 20n,
    requestedAt: at(0),
    effectiveAt: at(coolingSeconds),
  }
  const state = { own: { ...none, perDayMicros: 10n }, pending: [waiting], limits }
  assert.deepEqual(decide(state, { perDayMicros: 20n }), {
    own: state.own,
    tightened: [],
    raised: [],
    remaining: [waiting],
  })
  assert.deepEqual(decide(state, { perDayMicros: 30n }).raised, ['perDayMicros'])
  assert.deepEqual(decide(state, { perDayMicros: 30n }).remaining, [])
  assert.deepEqual(decide(state, { perDayMicros: 10n }).remaining, [], 'tightening drops what was to follow')
  assert.deepEqual(decide(state, { perTransactionMicros: 1n }).remaining, [waiting])
})

test('a transfer goes to effective recipients of its chain alone, and an agent only where agents are allowed', () => {
  const friends = [
    { chainId: '8453', address: vault.toUpperCase().replace('X', 'x'), agents: 'denied' as const },
    { chainId: '8453', address: usdc, agents: 'allowed' as const },
  ]
  const transferRule = (more: Partial<PolicyRequest>, effectiveRecipients = friends) => {
    const asked = ask({ operation: transferOperation, principal: 'person', tokens: [], ...more })
    const refusal = evaluate(asked, policyState({ effectiveRecipients }))
    return refusal?.code === 'policy_denied' ? refusal.rule : refusal
  }
  assert.equal(transferRule({ recipients: [vault] }), null)
  assert.equal(
    transferRule({ recipients: [vault] }, []),
    'recipient',
    'a contract of the gateway is no recipient',
  )
  assert.equal(transferRule({ recipients: [own] }), 'recipient')
  assert.equal(transferRule({ recipients: [] }), 'recipient')
  assert.equal(transferRule({ recipients: [vault, own] }), 'recipient')
  assert.equal(transferRule({ recipients: [usdc], chainId: '1' }), 'recipient')
  for (const principal of ['agent', undefined] as const) {
    const who = principal ? { principal } : {}
    const asked = ask({ operation: transferOperation, tokens: [], ...who, recipients: [vault] })
    const refusal = evaluate(asked, policyState({ effectiveRecipients: friends }))
    assert.equal(refusal?.code === 'policy_denied' && refusal.rule, 'agent_transfer')
    const allowed = { ...asked, recipients: [usdc] }
    assert.equal(evaluate(allowed, policyState({ effectiveRecipients: friends })), null)
  }
  const other = ask({ operation: 'swap', tokens: [], recipients: [usdc] })
  const refusal = evaluate(other, policyState({ effectiveRecipients: friends }))
  assert.equal(
    refusal?.code === 'policy_denied' && refusal.rule,
    'recipient',
    'no other operation pays to them',
  )
})

test('asking a person more often tightens; raising or removing the limit loosens', () => {
  const widened = (from: bigint | null, to: bigint | null) =>
    widenedFields({ ...platformLimits, approvalAboveMicros: from }, { approvalAboveMicros: to })
  assert.deepEqual(widened(null, 10n), [])
  assert.deepEqual(widened(10n, 9n), [])
  assert.deepEqual(widened(10n, 11n), ['approvalAboveMicros'])
  assert.deepEqual(widened(10n, null), ['approvalAboveMicros'])
  assert.deepEqual(widened(null, null), [])
  const lifted: Change = {
    id: 'a',
    field: 'approvalAboveMicros',
    value: null,
    requestedAt: at(0),
    effectiveAt: at(1),
  }
  const limited = { ...none, approvalAboveMicros: 10n }
  assert.equal(withChanges(limited, [lifted], at(0)).own.approvalAboveMicros, 10n)
  assert.equal(withChanges(limited, [lifted], at(1)).own.approvalAboveMicros, null)
})
