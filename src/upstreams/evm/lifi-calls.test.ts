import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, parseAbi } from 'viem/utils'
import { readLifiCall } from './lifi-calls.ts'
import type { Hex } from './wire.ts'

const abi = parseAbi([
  'struct SwapData { address callTo; address approveTo; address sendingAssetId; address receivingAssetId; uint256 fromAmount; bytes callData; bool requiresDeposit; }',
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct AcrossV3Data { address receiverAddress; address refundAddress; address receivingAssetId; uint256 outputAmount; uint64 outputAmountPercent; address exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityDeadline; bytes message; }',
  'function swapTokensGeneric(bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount, SwapData[] swapData) payable',
  'function startBridgeTokensViaAcrossV3(BridgeData bridgeData, AcrossV3Data acrossData) payable',
])
const address = (digit: string): Hex => `0x${digit.repeat(40)}`
const [diamond, zero, own, usdc, dai, stranger] = ['1', '0', '2', '3', '4', '5'].map(address) as [
  Hex,
  Hex,
  Hex,
  Hex,
  Hex,
  Hex,
]
const id: Hex = `0x${'ab'.repeat(32)}`

const leg = (change: object = {}) => ({
  callTo: stranger,
  approveTo: stranger,
  sendingAssetId: usdc,
  receivingAssetId: dai,
  fromAmount: 7n,
  callData: '0x' as Hex,
  requiresDeposit: true,
  ...change,
})
const swap = (legs: ReturnType<typeof leg>[], value = 0n) =>
  readLifiCall({
    to: diamond,
    value,
    data: encodeFunctionData({
      abi,
      functionName: 'swapTokensGeneric',
      args: [id, 'portico', '', own, 5n, legs],
    }),
  })
const bridgeData = (bridge: object = {}, across: object = {}) =>
  encodeFunctionData({
    abi,
    functionName: 'startBridgeTokensViaAcrossV3',
    args: [
      {
        transactionId: id,
        bridge: 'across',
        integrator: 'portico',
        referrer: zero,
        sendingAssetId: usdc,
        receiver: own,
        minAmount: 7n,
        destinationChainId: 42161n,
        hasSourceSwaps: false,
        hasDestinationCall: false,
        ...bridge,
      },
      {
        receiverAddress: own,
        refundAddress: own,
        receivingAssetId: dai,
        outputAmount: 5n,
        outputAmountPercent: 0n,
        exclusiveRelayer: zero,
        quoteTimestamp: 1,
        fillDeadline: 2,
        exclusivityDeadline: 0,
        message: '0x',
        ...across,
      },
    ],
  })
const bridge = (data: string, value = 0n) => readLifiCall({ to: diamond, value, data })

test('a swap says what it takes, what it guarantees, and to whom', () => {
  assert.deepEqual(swap([leg()]), {
    name: 'aggregate',
    contract: diamond,
    tokenIn: usdc,
    tokenOut: dai,
    amountInUnits: 7n,
    amountOutMinUnits: 5n,
    recipient: own,
    requestId: id,
  })
  const native = swap([leg({ sendingAssetId: zero })], 7n)
  assert.equal(native?.name === 'aggregate' && native.tokenIn, null)
})

test('a swap that takes more than its first part, or another value, cannot be read', () => {
  assert.equal(swap([leg(), leg()]), undefined)
  assert.notEqual(swap([leg(), leg({ requiresDeposit: false })]), undefined)
  assert.equal(swap([leg({ requiresDeposit: false })]), undefined)
  assert.equal(swap([leg()], 1n), undefined)
  assert.equal(swap([leg({ sendingAssetId: zero })], 8n), undefined)
  assert.equal(swap([]), undefined)
  assert.equal(swap(Array.from({ length: 5 }, (_, at) => leg({ requiresDeposit: at === 0 }))), undefined)
})

test('a bridge says what is paid on the other chain', () => {
  assert.deepEqual(bridge(bridgeData()), {
    name: 'bridge',
    depository: diamond,
    depositor: own,
    token: usdc,
    amountUnits: 7n,
    requestId: id,
    arrival: { chainId: '42161', token: dai, recipient: own, amountMinUnits: 5n },
  })
})

test('a bridge with a swap, a call, a message, another receiver or more bytes cannot be read', () => {
  assert.equal(bridge(bridgeData({ hasSourceSwaps: true })), undefined)
  assert.equal(bridge(bridgeData({ hasDestinationCall: true })), undefined)
  assert.equal(bridge(bridgeData({}, { message: '0x00' })), undefined)
  assert.equal(bridge(bridgeData({ receiver: stranger })), undefined)
  assert.equal(bridge(bridgeData({}, { receiverAddress: stranger })), undefined)
  assert.equal(bridge(bridgeData(), 7n), undefined)
  assert.equal(bridge(`${bridgeData()}00`), undefined)
  assert.equal(bridge('0x12345678'), undefined)
})
