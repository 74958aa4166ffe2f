import { decodeEventLog, decodeFunctionData, encodeFunctionData, getAddress, parseAbi } from 'viem/utils'
import type { DecodedCall, EvmCall } from '#kernel/task/signer.ts'
import type { Hex, Log } from './wire.ts'

/** Reads the calls of LI.FI's contract for custody: swaps, and the start of a bridge in the forms of Across. */

const structs = [
  'struct SwapData { address callTo; address approveTo; address sendingAssetId; address receivingAssetId; uint256 fromAmount; bytes callData; bool requiresDeposit; }',
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct AcrossV3Data { address receiverAddress; address refundAddress; address receivingAssetId; uint256 outputAmount; uint64 outputAmountPercent; address exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityDeadline; bytes message; }',
  'struct AcrossV4Data { bytes32 receiverAddress; bytes32 refundAddress; bytes32 sendingAssetId; bytes32 receivingAssetId; uint256 outputAmount; uint128 outputAmountMultiplier; bytes32 exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityParameter; bytes message; }',
] as const
const swapHead =
  'bytes32 transactionId, string integrator, string referrer, address receiver, uint256 minAmount'
const abi = parseAbi([
  ...structs,
  `function swapTokensGeneric(${swapHead}, SwapData[] swapData) payable`,
  `function swapTokensMultipleV3ERC20ToERC20(${swapHead}, SwapData[] swapData)`,
  `function swapTokensMultipleV3ERC20ToNative(${swapHead}, SwapData[] swapData)`,
  `function swapTokensMultipleV3NativeToERC20(${swapHead}, SwapData[] swapData) payable`,
  `function swapTokensSingleV3ERC20ToERC20(${swapHead}, SwapData swapData)`,
  `function swapTokensSingleV3ERC20ToNative(${swapHead}, SwapData swapData)`,
  `function swapTokensSingleV3NativeToERC20(${swapHead}, SwapData swapData) payable`,
  'function startBridgeTokensViaAcrossV3(BridgeData bridgeData, AcrossV3Data acrossData) payable',
  'function startBridgeTokensViaAcrossV4(BridgeData bridgeData, AcrossV4Data acrossData) payable',
  'function swapAndStartBridgeTokensViaAcrossV4(BridgeData bridgeData, SwapData[] swapData, AcrossV4Data acrossData) payable',
  'event LiFiTransferStarted(BridgeData bridgeData)',
])
type Decoded = NonNullable<ReturnType<typeof decode>>
type ArgsOf<Name extends Decoded['functionName']> = Extract<Decoded, { functionName: Name }>['args']
type SwapData = ArgsOf<'swapTokensGeneric'>[5][number]
type BridgeData = ArgsOf<'startBridgeTokensViaAcrossV4'>[0]

const zeroAddress = '0x0000000000000000000000000000000000000000'
/** The most swaps of one route; a swap that takes the fee counts too. */
const swapsMax = 4
/** `outputAmountMultiplier` of Across has 18 decimals: this value multiplies the swapped amount by one. */
const multiplierOne = 10n ** 18n
const tokenOf = (address: string): string | null => (address === zeroAddress ? null : address)

/** Decodes a call of LI.FI; undefined for other calls, extra bytes, and parts that the gateway never asks for. */
export function readLifiCall(call: EvmCall): DecodedCall | undefined {
  const decoded = decode(call.data as Hex)
  if (!decoded) return undefined
  switch (decoded.functionName) {
    case 'startBridgeTokensViaAcrossV3': {
      const [bridge, across] = decoded.args
      if (bridge.hasSourceSwaps) return undefined
      return bridgeOf(call, { bridge, taken: takenByBridge(bridge), across })
    }
    case 'startBridgeTokensViaAcrossV4': {
      const [bridge, data] = decoded.args
      const across = plainAcross(data, bridge)
      if (bridge.hasSourceSwaps || !across) return undefined
      return bridgeOf(call, { bridge, taken: takenByBridge(bridge), across })
    }
    case 'swapAndStartBridgeTokensViaAcrossV4': {
      const [bridge, swaps, data] = decoded.args
      const across = plainAcross(data, bridge)
      const taken = takenBySwaps(swaps)
      const isJoined = swaps.at(-1)?.receivingAssetId === bridge.sendingAssetId
      if (!bridge.hasSourceSwaps || !across || !taken || !isJoined) return undefined
      // The contract computes the output from the amount that the swaps yield. That amount is at least `minAmount`, so
      // this is the least output.
      const outputAmount = (bridge.minAmount * data.outputAmountMultiplier) / multiplierOne
      return bridgeOf(call, { bridge, taken, across: { ...across, outputAmount } })
    }
    case 'swapTokensSingleV3ERC20ToERC20':
    case 'swapTokensSingleV3ERC20ToNative':
    case 'swapTokensSingleV3NativeToERC20': {
      const [requestId, , , recipient, amountOutMinUnits, swap] = decoded.args
      return swapOf(call, decoded.functionName, { requestId, recipient, amountOutMinUnits, swaps: [swap] })
    }
    default: {
      const [requestId, , , recipient, amountOutMinUnits, swaps] = decoded.args
      return swapOf(call, decoded.functionName, { requestId, recipient, amountOutMinUnits, swaps })
    }
  }
}

type Taken = { token: string | null; amountUnits: bigint }

/** Returns what the first swap takes from the caller, or undefined if a later swap takes from the caller too. */
function takenBySwaps(swaps: readonly SwapData[]): Taken | undefined {
  const [first, ...others] = swaps
  if (!first || swaps.length > swapsMax || others.some((each) => each.requiresDeposit)) return undefined
  const token = tokenOf(first.sendingAssetId)
  return token !== null && !first.requiresDeposit ? undefined : { token, amountUnits: first.fromAmount }
}

const takenByBridge = ({ sendingAssetId, minAmount }: BridgeData): Taken => ({
  token: tokenOf(sendingAssetId),
  amountUnits: minAmount,
})

const hasItsValue = ({ value }: EvmCall, { token, amountUnits }: Taken): boolean =>
  value === (token === null ? amountUnits : 0n)

type Swap = {
  requestId: string
  recipient: string
  amountOutMinUnits: bigint
  swaps: readonly SwapData[]
}

function swapOf(
  call: EvmCall,
  functionName: string,
  { requestId, recipient, amountOutMinUnits, swaps }: Swap,
): DecodedCall | undefined {
  const taken = takenBySwaps(swaps)
  const last = swaps.at(-1)
  if (!taken || !last || !hasItsValue(call, taken)) return undefined
  const [tokenIn, tokenOut] = [taken.token, tokenOf(last.receivingAssetId)]
  const isGeneric = functionName === 'swapTokensGeneric'
  const form = `${tokenIn === null ? 'Native' : 'ERC20'}To${tokenOut === null ? 'Native' : 'ERC20'}`
  if (!isGeneric && !functionName.endsWith(form)) return undefined
  return {
    name: 'aggregate',
    contract: call.to,
    tokenIn,
    tokenOut,
    amountInUnits: taken.amountUnits,
    amountOutMinUnits,
    recipient,
    requestId,
  }
}

type Across = {
  receiverAddress: string
  refundAddress: string
  receivingAssetId: string
  outputAmount: bigint
  message: string
}

/**
 * Reads the data of Across version 4, whose addresses are 32-byte words. Returns undefined if a word is no EVM
 * address, or if the token is not that of the bridge.
 */
function plainAcross(
  data: ArgsOf<'startBridgeTokensViaAcrossV4'>[1],
  bridge: BridgeData,
): Across | undefined {
  const [receiverAddress, refundAddress, sendingAssetId, receivingAssetId] = [
    data.receiverAddress,
    data.refundAddress,
    data.sendingAssetId,
    data.receivingAssetId,
  ].map(addressOf)
  if (!receiverAddress || !refundAddress || !sendingAssetId || !receivingAssetId) return undefined
  // The native coin is bridged as the wrapped one.
  if (bridge.sendingAssetId !== zeroAddress && bridge.sendingAssetId !== sendingAssetId) return undefined
  const { outputAmount, message } = data
  return { receiverAddress, refundAddress, receivingAssetId, outputAmount, message }
}

const addressWord = /^0x0{24}([0-9a-f]{40})$/i
function addressOf(word: string): string | undefined {
  const [, digits] = addressWord.exec(word) ?? []
  return digits === undefined ? undefined : getAddress(`0x${digits}`)
}

type Bridge = { bridge: BridgeData; taken: Taken; across: Across }

function bridgeOf(call: EvmCall, { bridge, taken, across }: Bridge): DecodedCall | undefined {
  const isPlain = !bridge.hasDestinationCall && across.message === '0x'
  if (!isPlain || bridge.receiver !== across.receiverAddress || !hasItsValue(call, taken)) return undefined
  return {
    name: 'bridge',
    depository: call.to,
    depositor: across.refundAddress,
    ...taken,
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

/** The start of a transfer by LI.FI's contract, whose event does not name the payer. */
export type LifiDepositLog = {
  contract: string
  /**
   * What the contract took from the payer. Null if the contract swapped first, because the event then shows the result
   * of the swaps and not what the payer paid.
   */
  taken: { token: string | null; amountUnits: bigint } | null
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
    const { transactionId, sendingAssetId, minAmount, hasSourceSwaps } = args.bridgeData
    const token = tokenOf(sendingAssetId.toLowerCase())
    return {
      contract: log.address.toLowerCase(),
      taken: hasSourceSwaps ? null : { token, amountUnits: minAmount },
      requestId: transactionId.toLowerCase(),
    }
  } catch {
    return undefined
  }
}
