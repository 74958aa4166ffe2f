import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type Entry, type Exit, evaluateBracket, exitStateOf, isEnding, sumFills } from './bracket.ts'

const entry = (status: Entry['status']): Entry => ({ orderId: 1, status, filledSize: null, error: null })
const exit = (leg: Exit['leg'], state: Exit['state']): Exit => ({ leg, orderId: 2, state, error: null })
const fill = (size: string, price: string, feeUsd: string): Fill => ({
  symbol: 'BTC',
  orderId: 1,
  tradeId: 1,
  isBuy: true,
  price,
  size,
  feeUsd,
  feeToken: 'USDC',
  closedPnlUsd: '0',
  txHash: null,
  cloid: null,
  startSize: '0',
  cause: 'order',
  atMs: 0,
})

describe('a bracket', () => {
  test('is complete while no exit is missing, is repaired where a position lacks an exit, and unwound before a position exists', () => {
    const both = [exit('tp', 'open'), exit('sl', 'open')]
    const withoutStop = [exit('tp', 'open'), exit('sl', 'missing')]
    const fired = [exit('tp', 'closed'), exit('sl', 'closed')]
    assert.equal(evaluateBracket(entry('filled'), '1', both), 'complete')
    assert.equal(evaluateBracket(entry('filled'), '1', fired), 'complete')
    assert.equal(evaluateBracket(entry('filled'), '1', []), 'complete')
    assert.equal(evaluateBracket(entry('filled'), '1', withoutStop), 'repair')
    assert.equal(evaluateBracket(entry('partial'), '0.5', withoutStop), 'repair')
    assert.equal(evaluateBracket(entry('partial'), '0', withoutStop), 'nothing')
    assert.equal(evaluateBracket(entry('resting'), '0', both), 'complete')
    assert.equal(evaluateBracket(entry('resting'), '0', withoutStop), 'unwind')
    assert.equal(evaluateBracket(entry('resting'), '0.5', withoutStop), 'unwind')
  })

  test('an order status maps to the state of the exit, and an unknown status is an error', () => {
    const known = { open: 'open', triggered: 'closed', filled: 'closed', siblingFilledCanceled: 'closed' }
    for (const [status, state] of Object.entries(known)) assert.equal(exitStateOf(status), state)
    const ended = ['canceled', 'marginCanceled', 'scheduledCancel', 'internalCancel', 'rejected']
    for (const status of [...ended, 'badTriggerPxRejected']) {
      assert.equal(exitStateOf(status), 'missing')
      assert.ok(isEnding(status))
    }
    assert.equal(exitStateOf('open', { entryRests: true }), 'waiting')
    assert.equal(exitStateOf('reduceOnlyCanceled'), 'closed')
    assert.ok(!isEnding('teleported') && !isEnding('open') && !isEnding('filled'))
    assert.throws(() => exitStateOf('teleported'), { code: 'upstream_changed' })
  })

  test('fills add up exactly, rebates included', () => {
    const sum = sumFills([fill('0.1', '100.5', '0.01'), fill('0.2', '101', '-0.002')])
    assert.deepEqual([sum.size, sum.fee, sum.feeToken], ['0.3', '0.008', 'USDC'])
    assert.equal(sum.averagePrice, '100.833333333333333333')
    assert.deepEqual([sumFills([]).size, sumFills([]).averagePrice], ['0', null])
  })
})
