import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeAbiParameters, encodeEventTopics, parseAbi, parseAbiParameters } from 'viem/utils'
import { isTrueWord, paymentsOf, taskOfWord, taskWord } from './till-contract.ts'
import type { Hex } from './wire.ts'

const abi = parseAbi(['event Paid(address payer, uint256 amount, bytes32 task)'])
const topics = encodeEventTopics({ abi, eventName: 'Paid' }) as Hex[]
const till = '0x7111000000000000000000000000000000000001'
const payer = '0xAbCdEF0123456789abcdef0123456789abcdef01'
const task = '01a20766-9f3d-7d13-8775-e35412af6623'
const logOf = (address: string) => ({
  address,
  topics,
  index: 3,
  data: encodeAbiParameters(parseAbiParameters('address, uint256, bytes32'), [
    payer.toLowerCase() as Hex,
    7n,
    taskWord(task),
  ]),
})

test('the id of a task survives its word, and other words are no task', () => {
  fc.assert(
    fc.property(fc.uuid(), (id) => {
      if (/^[0-]+$/.test(id)) return
      assert.equal(taskOfWord(taskWord(id)), id)
      assert.equal(taskOfWord(taskWord(id).toUpperCase().replace('0X', '0x')), id)
    }),
  )
  assert.equal(taskOfWord(`0x${'0'.repeat(64)}`), undefined)
  assert.equal(taskOfWord(taskWord(task).replace('0x0', '0x1')), undefined)
})

test('only events of the contract are payments', () => {
  assert.deepEqual(paymentsOf([logOf(till)], till), [
    { payer: payer.toLowerCase(), amountUnits: 7n, task: taskWord(task), index: 3 },
  ])
  assert.deepEqual(paymentsOf([logOf(payer)], till), [])
  assert.deepEqual(paymentsOf([{ ...logOf(till), topics: [] }], till), [])
  assert.deepEqual(paymentsOf([{ ...logOf(till), data: '0x00' }], till), [])
})

test('an account without code is no till', () => {
  assert.equal(isTrueWord('0x'), false)
  assert.equal(isTrueWord(`0x${'0'.repeat(64)}`), false)
  assert.equal(isTrueWord(`0x${'0'.repeat(63)}1`), true)
})
