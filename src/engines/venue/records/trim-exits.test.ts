import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toFixedPoint } from '#kernel/money/money.ts'
import { type RestingExit, trimExits } from './trim-exits.ts'

const exit = (order_id: number, task_id: string, leg: 'tp' | 'sl', size: string): RestingExit => ({
  order_id,
  task_id,
  leg,
  size,
  trigger_price: '100',
})
const older = [exit(1, 'a', 'tp', '2'), exit(2, 'a', 'sl', '2')]
const newer = [exit(3, 'b', 'tp', '3'), exit(4, 'b', 'sl', '3')]
const trimmed = (left: string, exits = [...older, ...newer]) => {
  const { ended, smaller } = trimExits(exits, toFixedPoint(left))
  return [ended.map(({ order_id: id }) => id).sort(), smaller && [smaller.exit.order_id, smaller.units]]
}

test('keeps exits of which the part is covered, and ends all of them where nothing is left', () => {
  assert.deepEqual(trimmed('5'), [[], undefined])
  assert.deepEqual(trimmed('6'), [[], undefined])
  assert.deepEqual(trimmed('0'), [[1, 2, 3, 4], undefined])
})

test('ends the exits of the oldest tasks first', () => {
  assert.deepEqual(trimmed('3'), [[1, 2], undefined])
})

test('lets the stop go on for the rest, or the take-profit where there is no stop', () => {
  assert.deepEqual(trimmed('4'), [
    [1, 2],
    [2, toFixedPoint('1')],
  ])
  assert.deepEqual(trimmed('1'), [
    [1, 2, 3, 4],
    [4, toFixedPoint('1')],
  ])
  assert.deepEqual(trimmed('1', [older[0]!]), [[1], [1, toFixedPoint('1')]])
})
