import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headHistory, viewAtHead } from './lagging-view.ts'

const paramsAtHead = (method: string, params: unknown[]) =>
  viewAtHead({ id: 1, method, params }, 16).call.params
const replyAtHead = (method: string, params: unknown[], result: unknown) =>
  viewAtHead({ id: 1, method, params }, 16).reply({ id: 1, result })

test('a lagging node reads at its own newest block, and a read at an older block is unchanged', () => {
  assert.deepEqual(paramsAtHead('eth_call', [{ to: '0x1' }, 'latest']), [{ to: '0x1' }, '0x10'])
  assert.deepEqual(paramsAtHead('eth_getBalance', ['0x1']), ['0x1', '0x10'])
  assert.deepEqual(paramsAtHead('eth_getTransactionCount', ['0x1', 'pending']), ['0x1', '0x10'])
  assert.deepEqual(paramsAtHead('eth_getStorageAt', ['0x1', '0x0', 'latest']), ['0x1', '0x0', '0x10'])
  assert.deepEqual(paramsAtHead('eth_getBlockByNumber', ['0xf', false]), ['0xf', false])
  assert.deepEqual(paramsAtHead('eth_sendRawTransaction', ['0xabcd']), ['0xabcd'])
})

test('a block beyond the head of the node is absent, and reads at it are rejected', () => {
  assert.equal(replyAtHead('eth_getBlockByNumber', ['0x11', false], { number: '0x11' }).result, null)
  const refused = replyAtHead('eth_call', [{}, '0x11'], '0x') as { error: { message: string } }
  assert.equal(refused.error.message, 'header not found')
  assert.equal(replyAtHead('eth_blockNumber', [], '0x12').result, '0x10')
})

test('a receipt and a transaction of a later block are not mined yet', () => {
  const receipt = { blockNumber: '0x11', status: '0x1' }
  assert.equal(replyAtHead('eth_getTransactionReceipt', ['0xa'], receipt).result, null)
  assert.deepEqual(replyAtHead('eth_getTransactionReceipt', ['0xa'], { blockNumber: '0x10' }).result, {
    blockNumber: '0x10',
  })
  const transaction = { hash: '0xa', blockNumber: '0x11', blockHash: '0xb', transactionIndex: '0x0' }
  assert.deepEqual(replyAtHead('eth_getTransactionByHash', ['0xa'], transaction).result, {
    hash: '0xa',
    blockNumber: null,
    blockHash: null,
    transactionIndex: null,
  })
})

test('logs end at the newest block of the node', () => {
  assert.deepEqual(paramsAtHead('eth_getLogs', [{ fromBlock: '0x1', toBlock: 'latest' }]), [
    { fromBlock: '0x1', toBlock: '0x10' },
  ])
  assert.deepEqual(replyAtHead('eth_getLogs', [{ fromBlock: '0x11', toBlock: 'latest' }], [{}]).result, [])
  assert.deepEqual(paramsAtHead('eth_getLogs', [{ blockHash: '0xb' }]), [{ blockHash: '0xb' }])
})

test('a lagging node catches up with blocks that are old enough, and never lags more than the limit', () => {
  const history = headHistory(3)
  history.record(10, 0)
  assert.equal(history.laggedHead(0, 2_000), undefined, 'the first head is known to every node')
  history.record(11, 1_000)
  assert.equal(history.laggedHead(1_500, 2_000), 10)
  assert.equal(history.laggedHead(3_000, 2_000), undefined)
  for (const number of [12, 13, 14, 15, 16]) history.record(number, 3_000 + number)
  assert.equal(history.laggedHead(3_100, 2_000), 13)
  history.record(9, 3_200)
  assert.equal(
    history.laggedHead(3_300, 2_000),
    undefined,
    'a chain that was rolled back starts a new history',
  )
})
