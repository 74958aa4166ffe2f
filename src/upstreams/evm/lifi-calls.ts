import { decodeEventLog, decodeFunctionData, encodeFunctionData, parseAbi } from 'viem/utils'
import type { DecodedCall, EvmCall } from '#kernel/signer.ts'
import type { Hex, Log } from './wire.ts'

/** The two calls of LI.FI's contract that custody reads: a swap, and the start of a bridge in the form of Across. */

const structs = [
  'struct SwapData { address callTo; address approveTo; address sendingAssetId; address receivingAssetId; uint256 fromAmount; bytes callData; bool requiresDeposit; }',
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct AcrossV3Data { address receiverAddress; address refundAddress; address receivingAssetId; uint256 outputAmount; uint64 outputAmountPercent; address exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityDeadline; bytes message; }',
] as const
const abi = parseAbi([
  ...structs,
  'function swapTokensGeneric(bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount, SwapData[] swapData) payable',
  'function startBridgeTokensViaAcrossV3(BridgeData bridgeData, AcrossV3Data acrossData) payable',
  'event LiFiTransferStarted(BridgeData bridgeData)',
])

const zeroAddress = '0x0000000000000000000000000000000000000000'
const swapsMax = 4
const tokenOf = (address: string): string | null => (address === zeroAddress ? null : address)

/** Undefined for other calls, for bytes that say more than the call, and for parts that we never ask for. */
export function readLifiCall({ to, value, data }: EvmCall): DecodedCall | undefined {
  const decoded = decode(data as Hex)
  if (!decoded) return undefined
  if (decoded.functionName === 'swapTokensGeneric') {
    const [requestId, , , recipient, amountOutMinUnits, swaps] = decoded.args
    const [first, ...others] = swaps
    const last = swaps.at(-1)
    // A later swap that takes a deposit would take more than the first one.
    if (!first || !last || swaps.length > swapsMax || others.some((each) => each.requiresDeposit))
      return undefined
    const [tokenIn, tokenOut] = [tokenOf(first.sendingAssetId), tokenOf(last.receivingAssetId)]
    if (value !== (tokenIn === null ? first.fromAmount : 0n)) return undefined
    if (tokenIn !== null && !first.requiresDeposit) return undefined
    const amountInUnits = first.fromAmount
    return {
      name: 'aggregate',
      contract: to,
      tokenIn,
      tokenOut,
      amountInUnits,
      amountOutMinUnits,
      recipient,
      requestId,
    }
  }
  const [bridge, across] = decoded.args
  const isPlain = !bridge.hasSourceSwaps && !bridge.hasDestinationCall && across.message === '0x'
  if (!isPlain || bridge.receiver !== across.receiverAddress) return undefined
  const token = tokenOf(bridge.sendingAssetId)
  if (value !== (token === null ? bridge.minAmount : 0n)) return undefined
  return {
    name: 'bridge',
    depository: to,
    depositor: across.refundAddress,
    token,
    amountUnits: bridge.minAmount,
    requestId: bridge.transactionId,
    arrival: {
      chainId: String(bridge.destinationChainId),
      token: across.receivingAssetId,
      recipient: across.receiverAddress,
      amountMinUnits: across.outputAmount,
    },
  }
}

function decode(data: Hex) {
  try {
    const decoded = decodeFunctionData({ abi, data })
    const again = encodeFunctionData({ abi, ...decoded } as Parameters<typeof encodeFunctionData>[0])
    return again.toLowerCase() === data.toLowerCase() ? decoded : undefined
  } catch {
    return undefined
  }
}

/** The event names no payer. */
export type LifiDepositLog = {
  contract: string
  token: string | null
  amountUnits: bigint
  requestId: string
}

export function lifiDepositOf(log: Log): LifiDepositLog | undefined {
  try {
    const { args } = decodeEventLog({
      abi,
      eventName: 'LiFiTransferStarted',
      topics: log.topics as [Hex, ...Hex[]],
      data: log.data,
    })
    const { transactionId, sendingAssetId, minAmount } = args.bridgeData
    return {
      contract: log.address.toLowerCase(),
      token: tokenOf(sendingAssetId.toLowerCase()),
      amountUnits: minAmount,
      requestId: transactionId.toLowerCase(),
    }
  } catch {
    return undefined
  }
}
