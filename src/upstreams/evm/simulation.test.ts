import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EvmChainRow } from '#kernel/chains.ts'
import { resultsOf } from './batch.ts'
import { resultOf } from './simulation.ts'

const row = { displayName: 'Base' } as EvmChainRow
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
