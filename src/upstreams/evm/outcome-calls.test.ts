import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, pad, parseAbi } from 'viem/utils'
import { readOutcomeCall } from './outcome-calls.ts'

const abi = parseAbi([
  'function unwrap(address asset, address to, uint256 amount)',
  'function setApprovalForAll(address operator, bool approved)',
  'function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] amounts, bytes data)',
])
const contract = '0x00000000000000000000000000000000000000Aa'
const one = '0x0000000000000000000000000000000000000001'
const two = '0x0000000000000000000000000000000000000002'
const call = (data: `0x${string}`, value = 0n) => ({ to: contract, value, data })

test('calls of a prediction market are read with their receivers', () => {
  const unwrap = encodeFunctionData({ abi, functionName: 'unwrap', args: [one, two, 5n] })
  assert.deepEqual(readOutcomeCall(call(unwrap)), {
    name: 'unwrap_cash',
    ramp: contract,
    token: one,
    to: two,
    amountUnits: 5n,
  })
  const approve = encodeFunctionData({ abi, functionName: 'setApprovalForAll', args: [one, true] })
  assert.deepEqual(readOutcomeCall(call(approve)), {
    name: 'approve_shares',
    token: contract,
    operator: one,
    isApproved: true,
  })
})

test('a transfer of shares with data, calldata with more bytes, or a value is not read', () => {
  const args = [one, two, [1n], [1n]] as const
  const plain = encodeFunctionData({ abi, functionName: 'safeBatchTransferFrom', args: [...args, '0x'] })
  assert.deepEqual(readOutcomeCall(call(plain)), { name: 'move_shares', token: contract, from: one, to: two })
  const noted = encodeFunctionData({ abi, functionName: 'safeBatchTransferFrom', args: [...args, '0x01'] })
  assert.equal(readOutcomeCall(call(noted)), undefined)
  assert.equal(readOutcomeCall(call(`${plain}00`)), undefined)
  assert.equal(readOutcomeCall(call(plain, 1n)), undefined)
  assert.equal(readOutcomeCall(call(pad('0x12345678'))), undefined)
})
