import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transferOperation } from '#kernel/task/policy-action.ts'
import { approvalNeeded, evaluateSignature } from './approval-rules.ts'
import type { PolicyRequest } from './rules.ts'

const vault = '0xAAaA000000000000000000000000000000000000'
const usdc = '0xCcCc000000000000000000000000000000000000'
const ask = (change: Partial<PolicyRequest> = {}): PolicyRequest => ({
  chainId: '8453',
  tokens: [usdc],
  recipients: [vault],
  usdMicros: 50n,
  exit: false,
  ...change,
})

test('what an agent asks for above the limit needs an approval; people, the gateway and exits never do', () => {
  const limits = { approvalAboveMicros: 50n }
  const ruleOfNeed = (change: Partial<PolicyRequest>) => approvalNeeded(ask(change), { limits })?.rule ?? null
  assert.equal(ruleOfNeed({ usdMicros: 50n }), null)
  assert.equal(ruleOfNeed({ usdMicros: 51n }), 'approval_above_usd')
  assert.equal(ruleOfNeed({ usdMicros: 51n, principal: 'agent' }), 'approval_above_usd')
  for (const principal of ['person', 'gateway'] as const)
    assert.equal(ruleOfNeed({ usdMicros: 51n, principal }), null)
  assert.equal(ruleOfNeed({ usdMicros: 51n, exit: true }), null)
  assert.equal(approvalNeeded(ask({ usdMicros: 51n }), { limits: { approvalAboveMicros: null } }), null)
})

test('a larger loss than the default is for people, whatever the value is; orders that were left with it sell', () => {
  const limits = { approvalAboveMicros: null }
  const ruleOfNeed = (change: Partial<PolicyRequest>) =>
    approvalNeeded(ask({ acceptedLossBps: 2_501, ...change }), { limits })?.rule ?? null
  for (const principal of ['agent', 'chat'] as const) assert.equal(ruleOfNeed({ principal }), 'loss_bound')
  assert.equal(ruleOfNeed({ exit: true }), 'loss_bound')
  for (const principal of ['person', 'gateway'] as const) assert.equal(ruleOfNeed({ principal }), null)
})

test('a transfer of an agent to a recipient with approval needs one, and the signature refuses it without', () => {
  const effectiveRecipients = [
    { chainId: '8453', address: usdc, agents: 'approval' as const },
    { chainId: '8453', address: vault, agents: 'allowed' as const },
  ]
  const limits = { approvalAboveMicros: null }
  const to = (address: string, principal: 'agent' | 'person') =>
    ask({ operation: transferOperation, tokens: [], recipients: [address], principal })
  const need = (request: PolicyRequest) =>
    approvalNeeded(request, { limits, effectiveRecipients })?.rule ?? null
  assert.equal(need(to(usdc, 'agent')), 'recipient_approval')
  assert.equal(need(to(usdc, 'person')), null)
  assert.equal(need(to(vault, 'agent')), null)
  const signature = { limits, effectiveRecipients, reservedMicros: 50n, takenMicros: 50n }
  const refusal = evaluateSignature(to(usdc, 'agent'), signature)
  assert.equal(refusal?.code === 'policy_denied' && refusal.rule, 'agent_transfer')
  assert.equal(evaluateSignature(to(usdc, 'person'), signature), null)
})

test('a task signs above the limit for approvals only where it was accepted above it', () => {
  const limits = { approvalAboveMicros: 50n }
  const sign = (reservedMicros: bigint, takenMicros: bigint) =>
    evaluateSignature(ask({ usdMicros: takenMicros }), { limits, reservedMicros, takenMicros })
  assert.equal(sign(50n, 50n), null)
  assert.equal(sign(60n, 61n), null)
  const refusal = sign(50n, 51n)
  assert.equal(refusal?.code === 'policy_denied' && refusal.rule, 'approval_above_usd')
})
