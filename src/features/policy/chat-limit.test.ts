import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { transferOperation } from '#kernel/task/policy-action.ts'
import { approvalNeeded } from './approval-rules.ts'
import {
  chatRemainingMicros,
  evaluate,
  intersect,
  type Limits,
  type PolicyRequest,
  type PolicyState,
  refusedToChats,
  widenedFields,
} from './rules.ts'

const platformLimits: Limits = {
  perTransactionMicros: 1_000n,
  perDayMicros: 1_000n,
  chatPerDayMicros: 1_000n,
  chains: ['1'],
  tokens: null,
  recipients: [],
  approvalAboveMicros: null,
}
const none = {
  perTransactionMicros: null,
  perDayMicros: null,
  chatPerDayMicros: null,
  chains: null,
  tokens: null,
  recipients: null,
  approvalAboveMicros: null,
}
const stateOf = (chatPerDayMicros: bigint, change: Partial<PolicyState> = {}): PolicyState => ({
  limits: { ...platformLimits, chatPerDayMicros },
  platformLimits,
  ownAddresses: [],
  spentMicros: 0n,
  chatSpentMicros: 0n,
  paused: null,
  ...change,
})
const request = (usdMicros: bigint, change: Partial<PolicyRequest> = {}): PolicyRequest => ({
  operation: 'earn_deposit',
  principal: 'chat',
  chainId: '1',
  tokens: [],
  recipients: [],
  usdMicros,
  exit: false,
  ...change,
})
const ruleOf = (asked: PolicyRequest, state: PolicyState) => {
  const refusal = evaluate(asked, state) ?? refusedToChats(asked, state)
  return refusal?.code === 'policy_denied' ? refusal.rule : refusal?.code
}

test('chats start nothing where the user has set no limit, and never more than the platform allows', () => {
  assert.equal(intersect(platformLimits, none).chatPerDayMicros, 0n)
  assert.equal(intersect(platformLimits, { ...none, chatPerDayMicros: 2_000n }).chatPerDayMicros, 1_000n)
  assert.equal(ruleOf(request(1n), stateOf(0n)), 'chat_per_day_usd')
})

test('the limit of chats binds chats alone, and to the millionth', () => {
  const state = stateOf(100n, { chatSpentMicros: 40n, spentMicros: 40n })
  assert.equal(ruleOf(request(60n), state), undefined)
  assert.equal(ruleOf(request(61n), state), 'chat_per_day_usd')
  assert.equal(ruleOf(request(61n, { principal: 'agent' }), state), undefined)
  assert.equal(ruleOf(request(61n, { principal: 'person' }), state), undefined)
})

test('a chat starts nothing that counts nothing, and no transfer', () => {
  assert.equal(ruleOf(request(50n, { exit: true }), stateOf(100n)), 'chat_per_day_usd')
  assert.equal(ruleOf(request(0n), stateOf(100n)), 'chat_per_day_usd')
  const state = stateOf(100n, {
    effectiveRecipients: [{ chainId: '1', address: '0x1', agents: 'allowed' }],
  })
  const transfer = request(50n, { operation: transferOperation, recipients: ['0x1'] })
  assert.equal(ruleOf(transfer, state), 'chat_per_day_usd')
  assert.equal(ruleOf({ ...transfer, principal: 'agent' }, state), undefined)
})

test('a chat needs the approvals that an agent needs', () => {
  const state = { limits: { ...platformLimits, approvalAboveMicros: 10n } }
  assert.equal(approvalNeeded(request(10n), state), null)
  assert.equal(approvalNeeded(request(11n), state)?.rule, 'approval_above_usd')
})

test('raising the limit of chats is raising a limit, and lowering it is not', () => {
  const { limits } = stateOf(100n)
  assert.deepEqual(widenedFields(limits, { chatPerDayMicros: 101n }), ['chatPerDayMicros'])
  assert.deepEqual(widenedFields(limits, { chatPerDayMicros: 0n }), [])
})

test('whatever chats and others ask for, chats spend no more than their limit', () => {
  const asks = fc.array(
    fc.record({
      usdMicros: fc.bigInt(0n, 300n),
      principal: fc.constantFrom('chat' as const, 'agent' as const),
      exit: fc.boolean(),
      limit: fc.bigInt(0n, 400n),
    }),
    { maxLength: 40 },
  )
  fc.assert(
    fc.property(asks, (all) => {
      let [spentMicros, chatSpentMicros, highest] = [0n, 0n, 0n]
      for (const { usdMicros, principal, exit, limit } of all) {
        if (limit > highest) highest = limit
        const state = stateOf(limit, { spentMicros, chatSpentMicros })
        const asked = request(usdMicros, { principal, exit })
        const isAllowed = evaluate(asked, state) === null && refusedToChats(asked, state) === null
        if (!isAllowed) continue
        if (principal === 'chat') {
          assert.ok(usdMicros <= chatRemainingMicros(state))
          chatSpentMicros += usdMicros
        }
        if (!exit) spentMicros += usdMicros
        assert.ok(chatSpentMicros <= spentMicros && chatSpentMicros <= highest)
      }
    }),
  )
})
