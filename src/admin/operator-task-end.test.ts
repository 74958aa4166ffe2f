import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namedChains } from '#compose/operator-task-ends.ts'
import { operatorEndOfSwap } from '#features/swap/settle/operator-end.ts'
import type { SoughtExecution } from '#kernel/task/forgotten-execution.ts'
import type { TaskView } from '#kernel/task/task.ts'
import { endingOf, type Resolution, soughtEffect, withSought } from './operator-task-end.ts'

/** A repeated bridge whose deposit was found, and that does not say to which request of its provider it belongs. */

const hash = `0x${'ab'.repeat(32)}`
const chains = namedChains({ FINALITY: {} } as never)
const sideOn = (chainId: string) => {
  const address = chains.find(({ id }) => id === chainId)!.usdc
  const token = { address, symbol: 'USDC', decimals: 6 }
  return { chain_id: chainId, token, account: `0x${'a'.repeat(40)}`, is_native: false }
}
const found: SoughtExecution = { chain_id: '8453', kind: 'evm_batch', is_found: true, tx_hash: hash }
const taskOf = (sought: SoughtExecution) =>
  ({
    id: '0190a0b0-0000-7000-8000-000000000001',
    userId: '0190a0b0-0000-7000-8000-000000000003',
    kind: 'swap',
    effects: [],
    outcome: 'unknown',
    input: {},
    data: {
      sought,
      settled_by: 'status',
      origin: sideOn('8453'),
      destination: sideOn('137'),
      amount_in: '400000000',
      amount_out_min: '398000000',
      usd_micros: '400000000',
      quote: {},
      provider: 'relay',
      provider_request_id: '0x01',
    },
  }) as unknown as TaskView

const endOf = operatorEndOfSwap({
  chains,
  watchLatePayment: async () => {},
  hooks: { arm: async () => ({}), cancelOn: async () => ({}) },
} as never)
const endBy = (task: TaskView, given: Partial<Resolution>) => {
  const asked: Resolution = {
    outcome: 'executed',
    evidence: 'seen',
    txHash: null,
    payment: null,
    inUnits: null,
    outUnits: null,
    at: new Date(0),
    ...given,
  }
  const finding = withSought(task, asked)
  return {
    finding,
    ended: endOf(task, endingOf({ task, pending: [{ key: 'spend' }], actor: 'op' }, finding), finding),
  }
}
const paid = { outUnits: 390_000_000n, payment: { txHash: hash, logIndex: 1 } }

test('a deposit that was found is what an operator ends a swap by, and not the opposite of it', () => {
  const task = taskOf(found)
  assert.throws(() => endBy(task, { outcome: 'not_executed' }), new RegExp(`executed this before.*${hash}`))
  assert.throws(
    () => endBy(task, { txHash: `0x${'c'.repeat(64)}` }),
    /must be the transaction that was found/,
  )

  const { finding, ended } = endBy(task, paid)
  assert.ok('end' in ended && ended.end === 'completed', JSON.stringify(ended))
  assert.deepEqual([ended.moves, ended.result?.deposit_tx_hash], [[], hash])
  const changes = ended.data?.balance_changes as { amount: string }[]
  assert.deepEqual(changes.map(({ amount }) => amount).sort(), ['-400000000', '390000000'])
  const { externalId, kind } = soughtEffect({ ...task, step: 'sign' }, finding)!
  assert.deepEqual([externalId, kind], [hash, 'evm_batch'])

  const unpaid = endBy(task, { outcome: 'partial' }).ended
  assert.ok('end' in unpaid && unpaid.outcome === 'partial' && unpaid.writes, JSON.stringify(unpaid))
  const half = endBy(task, { ...paid, inUnits: 200_000_000n, outUnits: 195_000_000n }).ended
  assert.ok('end' in half && half.end === 'completed' && half.result?.amount_in === '200000000')
})

test('an execution whose transaction is not known is named by the operator', () => {
  const task = taskOf({ ...found, tx_hash: null })
  assert.throws(() => endBy(task, { outcome: 'not_executed' }), /executed this before/)
  assert.throws(() => endBy(task, { outcome: 'partial' }), /--tx-hash is required/)
  const { finding, ended } = endBy(task, {
    outcome: 'partial',
    txHash: hash.toUpperCase().replace('0X', '0x'),
  })
  assert.ok('end' in ended && ended.data?.deposit_tx === hash, JSON.stringify(ended))
  assert.equal(soughtEffect({ ...task, step: 'sign' }, finding)?.externalId, hash)
})

test('a look-up without an answer is ended by what the operator saw elsewhere', () => {
  const task = taskOf({ ...found, is_found: false, tx_hash: null })
  const { ended } = endBy(task, { outcome: 'not_executed' })
  assert.ok('end' in ended && ended.outcome === 'not_executed')
  assert.throws(() => endBy(task, { outcome: 'not_executed', txHash: hash }), /executed this before/)
  assert.ok('end' in endBy(task, { ...paid, txHash: hash }).ended)
})
