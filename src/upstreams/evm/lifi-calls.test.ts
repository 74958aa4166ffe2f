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
  'struct AcrossV4Data { bytes32 receiverAddress; bytes32 refundAddress; bytes32 sendingAssetId; bytes32 receivingAssetId; uint256 outputAmount; uint128 outputAmountMultiplier; bytes32 exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityParameter; bytes message; }',
  'function swapTokensMultipleV3ERC20ToERC20(bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount, SwapData[] swapData)',
  'function swapTokensMultipleV3NativeToERC20(bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount, SwapData[] swapData) payable',
  'function swapTokensSingleV3ERC20ToNative(bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount, SwapData swapData)',
  'function startBridgeTokensViaAcrossV4(BridgeData bridgeData, AcrossV4Data acrossData) payable',
  'function swapAndStartBridgeTokensViaAcrossV4(BridgeData bridgeData, SwapData[] swapData, AcrossV4Data acrossData) payable',
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

const word = (address: Hex): Hex => `0x${'0'.repeat(24)}${address.slice(2)}`
const bridgeHead = (change: object = {}) => ({
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
  ...change,
})
const acrossFour = (change: object = {}) => ({
  receiverAddress: word(own),
  refundAddress: word(own),
  sendingAssetId: word(usdc),
  receivingAssetId: word(dai),
  outputAmount: 5n,
  outputAmountMultiplier: 900_000_000_000_000_000n,
  exclusiveRelayer: word(zero),
  quoteTimestamp: 1,
  fillDeadline: 2,
  exclusivityParameter: 0,
  message: '0x' as Hex,
  ...change,
})
const startFour = (head: object = {}, across: object = {}, value = 0n) =>
  bridge(
    encodeFunctionData({
      abi,
      functionName: 'startBridgeTokensViaAcrossV4',
      args: [bridgeHead(head), acrossFour(across)],
    }),
    value,
  )
const swapAndStart = (legs: ReturnType<typeof leg>[], head: object = {}, across: object = {}, value = 0n) =>
  bridge(
    encodeFunctionData({
      abi,
      functionName: 'swapAndStartBridgeTokensViaAcrossV4',
      args: [bridgeHead({ hasSourceSwaps: true, ...head }), legs, acrossFour(across)],
    }),
    value,
  )

test('the swap functions of the third facet have the selectors of the contract and are read like the generic one', () => {
  const args = [id, 'portico', '', own, 5n] as const
  const multiple = encodeFunctionData({
    abi,
    functionName: 'swapTokensMultipleV3ERC20ToERC20',
    args: [...args, [leg(), leg({ requiresDeposit: false })]],
  })
  assert.equal(multiple.slice(0, 10), '0x5fd9ae2e')
  const read = bridge(multiple)
  assert.deepEqual(read, swap([leg(), leg({ requiresDeposit: false })]))
  const single = encodeFunctionData({
    abi,
    functionName: 'swapTokensSingleV3ERC20ToNative',
    args: [...args, leg({ receivingAssetId: zero })],
  })
  assert.deepEqual(bridge(single), swap([leg({ receivingAssetId: zero })]))
  const native = encodeFunctionData({
    abi,
    functionName: 'swapTokensMultipleV3NativeToERC20',
    args: [...args, [leg({ sendingAssetId: zero })]],
  })
  assert.deepEqual(bridge(native, 7n), swap([leg({ sendingAssetId: zero })], 7n))
  assert.equal(bridge(native), undefined)
  // A function whose name contradicts its tokens.
  for (const wrong of [leg({ receivingAssetId: zero }), leg({ sendingAssetId: zero })]) {
    const data = encodeFunctionData({
      abi,
      functionName: 'swapTokensMultipleV3ERC20ToERC20',
      args: [...args, [wrong]],
    })
    for (const value of [0n, 7n]) assert.equal(bridge(data, value), undefined)
  }
})

test('a bridge in the fourth form of Across is read, with and without swaps before it', () => {
  assert.deepEqual(startFour(), bridge(bridgeData()))
  const fee = leg({ receivingAssetId: usdc, fromAmount: 8n })
  assert.deepEqual(swapAndStart([fee]), {
    ...bridge(bridgeData()),
    amountUnits: 8n,
    arrival: { chainId: '42161', token: dai, recipient: own, amountMinUnits: 6n },
  })
  const native = swapAndStart([leg({ sendingAssetId: zero, receivingAssetId: usdc })], {}, {}, 7n)
  assert.equal(native?.name === 'bridge' && native.token, null)
})

test('a bridge of another token, to another chain family, or with swaps that take more cannot be read', () => {
  const selector = encodeFunctionData({
    abi,
    functionName: 'startBridgeTokensViaAcrossV4',
    args: [bridgeHead(), acrossFour()],
  })
  assert.equal(bridge(`${selector}00`), undefined)
  assert.equal(startFour({ hasSourceSwaps: true }), undefined)
  assert.equal(startFour({ hasDestinationCall: true }), undefined)
  assert.equal(startFour({}, { message: '0x00' }), undefined)
  assert.equal(startFour({}, { sendingAssetId: word(dai) }), undefined)
  assert.equal(startFour({}, { receiverAddress: word(stranger) }), undefined)
  assert.equal(startFour({}, { receiverAddress: `0x${'7'.repeat(64)}` }), undefined)
  assert.equal(startFour({}, { receiverAddress: `0x${'7'.repeat(24)}${own.slice(2)}` }), undefined)
  assert.equal(startFour({}, {}, 7n), undefined)
  const fee = leg({ receivingAssetId: usdc })
  assert.equal(swapAndStart([fee], { hasSourceSwaps: false }), undefined)
  assert.equal(swapAndStart([]), undefined)
  assert.equal(swapAndStart([leg()]), undefined)
  assert.equal(swapAndStart([fee, leg({ receivingAssetId: usdc })]), undefined)
  assert.equal(swapAndStart([fee], {}, {}, 7n), undefined)
})
