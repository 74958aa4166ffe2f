import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/fault.ts'
import type { StepContext, TaskView } from '#kernel/task.ts'
import { type OrderRules, orderKind, type RunOrderDeps } from './run-order.ts'

const now = new Date(1_000_000)
const task = {
  id: 't',
  userId: 'u',
  input: {},
  data: { trigger_order_id: 'o' },
  createdAt: now,
  deadline: new Date(now.getTime() + 900_000),
} as unknown as TaskView
const rules = {
  kind: 'test_execute',
  soldToken: () => ({ chainId: '1', address: '0x' }),
  swapOf: () => ({}),
  resultOf: () => ({}),
} as unknown as OrderRules<Record<string, never>>

/** An order whose purchase ends with this status of the security check. */
const prepared = async (status: string) => {
  const unsafe = new Fault('token_unsafe', 'The security check did not pass', { extras: { status } })
  const deps = {
    db: { query: async () => ({ rows: [] }) },
    swaps: {
      steps: {},
      available: async () => ({ units: 1n, heldUnits: 0n }),
      prepare: () => Promise.reject(unsafe),
    },
  } as unknown as RunOrderDeps
  return orderKind(deps, rules).steps.prepare!(task, { now } as StepContext)
}

test('a security check that proved nothing is made again, and a token that it flagged ends the order', async () => {
  for (const status of ['api_unavailable', 'skipped'])
    await assert.rejects(prepared(status), { code: 'unavailable' })
  const ended = await prepared('flagged')
  assert.ok('end' in ended && ended.end === 'failed')
  assert.equal(ended.error?.code, 'token_unsafe')
})

/** The step after an order whose sale ended with this refund. */
const afterRefund = async (refunded: object | null) => {
  const order = { id: 'o', status: 'fired', input: {}, quote_key: null }
  const ending = {
    end: 'failed',
    outcome: 'partial',
    error: { code: 'refunded', message: 'The deposit was refunded', retryable: false },
    result: { amount_in: '1000', amount_out: '0', refunded },
  }
  const deps = { swaps: { steps: { track: async () => ending } } } as unknown as RunOrderDeps
  const event = ({ status }: { status: string }) => ({ type: 'order', data: { status } })
  const kind = orderKind(deps, { ...rules, event } as unknown as typeof rules)
  const result = await kind.steps.track!(task, { now } as StepContext)
  const armed = { ...order, status: 'armed' }
  const tx = {
    query: async ({ text }: { text: string }) => ({ rows: [text.includes('update') ? armed : order] }),
  }
  const added = 'end' in result ? await result.complete?.(tx as never) : undefined
  return added?.events?.[0]?.data.status === 'armed'
}

test('an order whose deposit came back is armed again, also where the refund had a cost', async () => {
  assert.ok(await afterRefund({ chain_id: '1', token_address: '0x', amount: '990', tx_hash: 'h' }))
  assert.ok(!(await afterRefund({ chain_id: '1', token_address: '0xother', amount: '990', tx_hash: 'h' })))
  assert.ok(!(await afterRefund({ chain_id: '2', token_address: '0x', amount: '990', tx_hash: 'h' })))
  assert.ok(!(await afterRefund({ chain_id: '1', token_address: '0x', amount: '979', tx_hash: 'h' })))
  assert.ok(!(await afterRefund(null)))
})
