import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, parseAbi } from 'viem/utils'
import { assertIntent } from '#engines/custody/evm-rules.ts'
import { chainList } from '#features/chains/chain-list.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { EvmCall, EvmIntent, TokenSpend } from '#kernel/task/signer.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { approveData } from '#upstreams/evm/token-calls.ts'

/** What custody signs of a swap or bridge by the contract of the second provider. */

type Hex = `0x${string}`
const abi = parseAbi([
  'struct SwapData { address callTo; address approveTo; address sendingAssetId; address receivingAssetId; uint256 fromAmount; bytes callData; bool requiresDeposit; }',
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct AcrossV3Data { address receiverAddress; address refundAddress; address receivingAssetId; uint256 outputAmount; uint64 outputAmountPercent; address exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityDeadline; bytes message; }',
  'function swapTokensGeneric(bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount, SwapData[] swapData) payable',
  'function startBridgeTokensViaAcrossV3(BridgeData bridgeData, AcrossV3Data acrossData) payable',
])
const row = chainList({ urls: { '8453': 'http://base.test' }, finality: 'local' })[0] as EvmChainRow
const swaps = { ...row.swaps!, native: row.native.address }
const aggregator = swaps.aggregator as Hex
const usdc = row.usdc as Hex
const zero: Hex = `0x${'00'.repeat(20)}`
const own: Hex = `0x${'11'.repeat(20)}`
const stranger: Hex = `0x${'22'.repeat(20)}`
const id: Hex = `0x${'ab'.repeat(32)}`
const now = new Date('2026-01-01T00:00:00Z')
const units = 25_000_000n
const wei = 10n ** 16n

type Change = { to?: string; receiver?: Hex; refund?: Hex; min?: bigint; token?: Hex; amount?: bigint }
const approve = (spender: string = aggregator, amount = units): EvmCall => ({
  to: usdc,
  value: 0n,
  data: approveData(spender, amount),
})
const sentValue = ({ token = usdc, amount = units }: Change) => (token === zero ? amount : 0n)
const swap = (change: Change = {}): EvmCall => {
  const { to = aggregator, receiver = own, min = 1n, token = usdc, amount = units } = change
  const leg = {
    callTo: stranger,
    approveTo: stranger,
    sendingAssetId: token,
    receivingAssetId: stranger,
    fromAmount: amount,
    callData: '0x' as Hex,
    requiresDeposit: true,
  }
  const args = [id, 'portico', '', receiver, min, [leg]] as const
  return {
    to,
    value: sentValue(change),
    data: encodeFunctionData({ abi, functionName: 'swapTokensGeneric', args }),
  }
}
const bridge = (change: Change = {}): EvmCall => {
  const { to = aggregator, receiver = own, refund = own, min = 1n, token = usdc, amount = units } = change
  const bridgeData = {
    transactionId: id,
    bridge: 'across',
    integrator: 'portico',
    referrer: zero,
    sendingAssetId: token,
    receiver,
    minAmount: amount,
    destinationChainId: 42161n,
    hasSourceSwaps: false,
    hasDestinationCall: false,
  }
  const across = {
    receiverAddress: receiver,
    refundAddress: refund,
    receivingAssetId: stranger,
    outputAmount: min,
    outputAmountPercent: 0n,
    exclusiveRelayer: zero,
    quoteTimestamp: 1,
    fillDeadline: 2,
    exclusivityDeadline: 0,
    message: '0x' as Hex,
  }
  const args = [bridgeData, across] as const
  const data = encodeFunctionData({ abi, functionName: 'startBridgeTokensViaAcrossV3', args })
  return { to, value: sentValue(change), data }
}
const spend = (change: Partial<TokenSpend> = {}): TokenSpend => ({
  token: usdc,
  amountUnits: units,
  spender: aggregator,
  ...change,
})
const nativeSpend = spend({ token: swaps.native, amountUnits: wei })

function ruleOf(calls: EvmCall[], spends: TokenSpend[] = [spend()]): unknown {
  const intent: EvmIntent = {
    type: 'evm_batch',
    userId: 'user',
    taskId: 'task',
    operation: 'swap',
    chainId: '8453',
    tokens: [usdc],
    recipients: [aggregator],
    usdMicros: units,
    exit: false,
    spends,
    batch: {
      chainId: '8453',
      account: own,
      delegate: row.delegate!,
      calls,
      nonce: 1n,
      deadlineSeconds: now.getTime() / 1_000 + 600,
    },
    delegation: null,
  }
  const maxUnits = { [usdc.toLowerCase()]: units, [swaps.native.toLowerCase()]: wei }
  const chain = { chainId: '8453', delegate: row.delegate!, contracts: [], swaps, maxUnits }
  try {
    assertIntent({ intent, own, now, readCall: evmCrypto.decodeCall, chain })
    return 'signed'
  } catch (fault) {
    assert.ok(fault instanceof Fault, String(fault))
    return fault.extras.rule
  }
}

test('a swap and a bridge of exactly what the intent spends, to the own account, are signed', () => {
  assert.equal(ruleOf([approve(), swap()]), 'signed')
  assert.equal(ruleOf([approve(), bridge()]), 'signed')
  assert.equal(ruleOf([swap({ token: zero, amount: wei })], [nativeSpend]), 'signed')
  assert.equal(ruleOf([bridge({ token: zero, amount: wei })], [nativeSpend]), 'signed')
})

const refusals: [string, EvmCall[], string][] = [
  ['a swap for another account', [approve(), swap({ receiver: stranger })], 'signer_receiver'],
  ['a swap without a minimum', [approve(), swap({ min: 0n })], 'signer_minimum'],
  ['a swap at another contract', [approve(), swap({ to: stranger })], 'signer_contract'],
  ['a swap of more than the spend', [approve(), swap({ amount: units + 1n })], 'signer_spend'],
  ['a bridge to another account', [approve(), bridge({ receiver: stranger })], 'signer_receiver'],
  ['a refund to another account', [approve(), bridge({ refund: stranger })], 'signer_receiver'],
  ['a bridge without a minimum', [approve(), bridge({ min: 0n })], 'signer_minimum'],
  ['a bridge at the depository', [approve(), bridge({ to: swaps.depository! })], 'signer_contract'],
  ['an approval that is not used up', [approve(), swap({ amount: units - 1n })], 'signer_spend'],
  ['an approval for another contract', [approve(stranger), swap()], 'signer_spender'],
]
for (const [what, calls, rule] of refusals)
  test(`custody refuses ${what}`, () => assert.equal(ruleOf(calls), rule))
