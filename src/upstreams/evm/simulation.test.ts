import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionResult, parseAbi } from 'viem/utils'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'
import { callsData, resultsOf } from './multicall-abi.ts'
import { resultOf, simulationOf } from './simulation.ts'

const gasLimits = { txMax: 2n ** 24n, callsMax: 12_000_000n, emptyTx: 21_000n }
const row = { displayName: 'Base', gas: gasLimits } as EvmChainRow
const refusal = (code: number, message: string) => () => resultOf(row, { error: { code, message } })

test('limits and lags of providers count as an unavailable node, whatever their texts', () => {
  const said: [number, string][] = [
    [-32005, 'daily request count exceeded'],
    [429, 'Your app has exceeded its compute units per second capacity.'],
    [-32007, '50/second request limit reached - reduce calls per second'],
    [-32000, 'header not found'],
    [-32000, 'historical state 0x12 is not available'],
    [-32603, 'Internal error'],
    [-32602, 'block not found: 0x1234'],
    [-32001, 'Resource not found.'],
  ]
  for (const [code, message] of said) assert.throws(refusal(code, message), { code: 'unavailable' }, message)
})

test('a call that the node executed is rejected for good', () => {
  const said: [number, string][] = [
    [3, 'execution reverted: no'],
    [-32000, 'execution reverted'],
    [-32601, 'the method eth_foo does not exist'],
    [-32602, 'invalid argument 0: hex string without 0x prefix'],
  ]
  for (const [code, message] of said)
    assert.throws(refusal(code, message), { code: 'upstream_rejected' }, message)
})

test('views answered with nothing were not run by this node', () => {
  assert.throws(() => resultsOf('0x'), { code: 'unavailable' })
})

const resultAbi = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3() returns (Result[] returnData)',
])
const simulated = (estimate: RpcAnswer) => {
  const call = { to: `0x${'11'.repeat(20)}`, value: 0n, data: `0x${'ab'.repeat(68)}` }
  const done = { success: true, returnData: '0x' } as const
  const tried = encodeFunctionResult({
    abi: resultAbi,
    functionName: 'aggregate3',
    result: [done, done, done],
  })
  const data = callsData([call, call], { allowFailure: false })
  return simulationOf(row, 2, { result: tried }, { answer: estimate, data })
}
const gasOf = (estimate: bigint) => {
  const simulation = simulated({ result: `0x${estimate.toString(16)}` })
  assert.ok(simulation.ok)
  return simulation.gas
}

test('an estimate of an account without the code of the override measures none of the calls', () => {
  assert.equal(gasOf(200_000n), 410_000n)
  for (const estimate of [21_000n, 25_560n, 30_000n]) assert.equal(gasOf(estimate), 1_233_043n)
})

test('calls that need more gas than one transaction may use fail, whichever answer shows it', () => {
  assert.equal(gasOf(gasLimits.callsMax), 15_750_000n)
  const outOfGas = { error: { code: -32000, message: 'gas required exceeds allowance (16777216)' } }
  for (const answer of [{ result: '0xb71b01' }, outOfGas]) {
    const simulation = simulated(answer)
    assert.ok(!simulation.ok)
    assert.match(simulation.reason, /more gas than one transaction on Base may use/)
  }
  const tried = simulationOf(
    row,
    2,
    { error: { code: -32000, message: 'out of gas' } },
    { answer: outOfGas, data: '0x' },
  )
  assert.ok(!tried.ok)
})
