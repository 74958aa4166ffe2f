import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fillView, transactionView } from './run-transactions.ts'

const task = {
  id: 't',
  execution_id: 'e',
  kind: 'perp_open',
  status: 'completed' as const,
  outcome: 'executed' as const,
  input: { asset: 'ETH', side: 'long' },
  data: {},
  result: null,
  created_at: new Date(0),
}

test('a trade at the venue shows what was filled, and what it asked for before', () => {
  const open = transactionView({ ...task, status: 'running', outcome: null } as never)
  assert.deepEqual([open.asset, open.side, open.size, open.tx_hash], ['ETH', 'long', null, null])
  const filled = transactionView({
    ...task,
    data: { fills: [{ side: 'buy', size: '0.1', price: '2000', fee: '0.07', fee_token: 'USDC' }] },
    result: { asset: 'ETH', filled_size: '0.2', avg_price: '2001', fee: '0.14', fee_token: 'USDC' },
  })
  assert.deepEqual(
    [filled.side, filled.size, filled.price, filled.fee, filled.fee_token],
    ['buy', '0.2', '2001', '0.14', 'USDC'],
  )
})

test('a swap shows its transaction and its value', () => {
  const swapped = transactionView({
    ...task,
    kind: 'swap_execute',
    input: { token_out: 'ETH', amount: 20 },
    data: {
      transactions: [
        { chain_id: '8453', tx_hash: '0x1' },
        { chain_id: '8453', tx_hash: '0x2' },
      ],
    },
    result: { volume_usd: '20' },
  })
  assert.deepEqual(
    [swapped.chain_id, swapped.tx_hash, swapped.asset, swapped.amount_usd, swapped.size],
    ['8453', '0x2', 'ETH', '20', null],
  )
})

test('a fill of a strategy has its fee, its result and the decision that it carries out', () => {
  const fill = fillView({
    fill_id: 7n,
    execution_id: 'e',
    mode: 'paper',
    asset: 'ETH',
    is_buy: false,
    size: '0.01',
    price: '2000',
    amount_usd: '20',
    fee_usd: '0.009',
    realized_pnl_usd: '-1.5',
    reason: 'stop',
    is_exit: true,
    decision_seq: 1,
    tx_hash: null,
    at: new Date(0),
  })
  assert.deepEqual([fill.id, fill.task_id, fill.kind, fill.tx_hash], ['paper-7', null, 'fill', null])
  assert.deepEqual(
    [
      fill.side,
      fill.fee,
      fill.fee_token,
      fill.realized_pnl_usd,
      fill.reason,
      fill.is_exit,
      fill.decision_seq,
    ],
    ['sell', '0.009', 'USDC', '-1.5', 'stop', true, 1],
  )
})
