import { decodeFunctionData, encodeFunctionData, parseAbi } from 'viem/utils'
import type { EvmCall, OutcomeCall } from '#kernel/task/signer.ts'
import type { Hex } from './wire.ts'

/** The calls at the contracts of a prediction market that custody can read. */

const abi = parseAbi([
  'function wrap(address asset, address to, uint256 amount)',
  'function unwrap(address asset, address to, uint256 amount)',
  'function setApprovalForAll(address operator, bool approved)',
  'function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] amounts, bytes data)',
  'function redeemPositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] indexSets)',
  'function redeem(bytes31 conditionId, uint256 outcome, uint256 amount)',
])

/** Decodes a call; undefined for calls of other contracts, and for calldata with extra bytes. */
export function readOutcomeCall({ to, data, value }: EvmCall): OutcomeCall | undefined {
  if (value !== 0n) return undefined
  const decoded = decode(data as Hex)
  if (!decoded) return undefined
  switch (decoded.functionName) {
    case 'wrap':
    case 'unwrap': {
      const [token, receiver, amountUnits] = decoded.args
      const name = decoded.functionName === 'wrap' ? 'wrap_cash' : 'unwrap_cash'
      return { name, ramp: to, token, to: receiver, amountUnits }
    }
    case 'safeBatchTransferFrom': {
      const [from, receiver, , , note] = decoded.args
      return note === '0x' ? { name: 'move_shares', token: to, from, to: receiver } : undefined
    }
    case 'setApprovalForAll':
      return { name: 'approve_shares', token: to, operator: decoded.args[0], isApproved: decoded.args[1] }
    default:
      return { name: 'redeem_shares', contract: to }
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
