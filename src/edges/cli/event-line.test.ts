import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChangeLines, eventLine } from './event-line.ts'

const created_at = new Date(2026, 0, 31, 9, 5, 7).toISOString()
const task = {
  kind: 'swap',
  status: 'completed',
  outcome: 'executed',
  progress: null,
  error: null,
  result: null,
  fills: [],
  balance_changes: [
    { chain_id: '8453', symbol: 'USDC', decimals: 6, amount: '-20000000' },
    { chain_id: '8453', symbol: 'ETH', decimals: 18, amount: '5697137177097091' },
  ],
}
const eventOf = (type: string, data: object) =>
  eventLine({ id: '7', type, data, created_at }, new Date(created_at))

test('an event of a task says when, what, how it stands, and how much', () => {
  assert.equal(
    eventOf('task.completed', task),
    '09:05:07  swap  completed, executed  -20 USDC, +0.005697 ETH',
  )
  const fills = [{ side: 'buy', size: '0.00191', price: '104381' }]
  assert.equal(
    eventOf('task.completed', { ...task, kind: 'perp_open', balance_changes: [], fills }),
    '09:05:07  perp open  completed, executed  buy 0.00191 at 104,381',
  )
})

test('a failure has its reason, and a step that runs its name', () => {
  const error = { code: 'insufficient_liquidity', message: 'The price has moved' }
  const failed = { ...task, status: 'failed', outcome: 'not_executed', balance_changes: [], error }
  assert.equal(
    eventOf('task.failed', failed),
    '09:05:07  swap  failed, not executed  insufficient liquidity: The price has moved',
  )
  const progress = { step: 1, of: 2, text: 'Moving 49 USDC' }
  const running = { ...task, status: 'running', outcome: null, balance_changes: [], progress }
  assert.equal(eventOf('task.updated', running), '09:05:07  swap  running, step 1 of 2: Moving 49 USDC')
})

test('other events say what they are about', () => {
  const fill = {
    asset: 'BTC',
    side: 'buy',
    size: '0.00191',
    price: '104381',
    fee: '0.0897',
    fee_token: 'USDC',
  }
  assert.equal(
    eventOf('order.filled', fill),
    '09:05:07  order filled  BTC buy 0.00191 at 104,381 fee 0.0897 USDC',
  )
  assert.equal(
    eventOf('funding.paid', { asset: 'BTC', amount_usd: '-0.25', rate: '0' }),
    '09:05:07  funding paid  BTC -$0.25',
  )
})

test('a change that would say the same again of its task has no line', () => {
  const lineOf = createChangeLines()
  const line = (type: string, data: object) => lineOf({ type, data, created_at }, new Date(created_at))
  const running = { ...task, task_id: 'one', status: 'running', outcome: null, balance_changes: [] }
  assert.equal(line('task.created', running), '09:05:07  swap  running')
  assert.equal(line('task.updated', { ...running, message: 'Confirming' }), undefined)
  assert.equal(line('task.created', { ...running, task_id: 'two' }), '09:05:07  swap  running')
  const progress = { step: 1, of: 2, text: 'Moving 49 USDC' }
  assert.match(line('task.updated', { ...running, progress }) ?? '', /step 1 of 2/)
  assert.match(line('task.completed', { ...task, task_id: 'one' }) ?? '', /completed, executed/)
})
