import { decodeErrorResult, parseAbi } from 'viem/utils'
import type { Hex } from './wire.ts'

const abi = parseAbi([
  'error Error(string)',
  'error Panic(uint256)',
  'error CallFailed(bytes)',
  'error InvalidSignature()',
  'error InvalidNonce()',
  'error SignatureExpired()',
  'error Unauthorized()',
  'error ERC20InsufficientBalance(address,uint256,uint256)',
  'error ERC20InsufficientAllowance(address,uint256,uint256)',
  'error ERC4626ExceededMaxDeposit(address,uint256,uint256)',
  'error ERC4626ExceededMaxWithdraw(address,uint256,uint256)',
  'error ERC4626ExceededMaxRedeem(address,uint256,uint256)',
  'error SafeERC20FailedOperation(address)',
  'error Illiquid()',
])

const sentences: Record<string, string> = {
  ERC20InsufficientBalance: 'the token balance does not cover the transfer',
  ERC20InsufficientAllowance: 'the allowance does not cover the transfer',
  Illiquid: 'the vault has no liquidity at present',
  SignatureExpired: 'the signature expired before it was mined',
}

/** The reason of a call that reverted without data; a call that ran out of gas has the same reason. */
export const noReason = 'the call reverted without a reason'

export function revertReason(data: Hex): string {
  if (data.length < 10) return noReason
  try {
    const { errorName, args } = decodeErrorResult({ abi, data })
    if (errorName === 'Error') return String(args[0])
    if (errorName === 'CallFailed') return revertReason(args[0])
    if (errorName === 'Panic') return `the contract panicked with code ${args[0]}`
    return sentences[errorName] ?? `the contract refused with ${errorName}`
  } catch {
    return `the contract refused with ${data.slice(0, 10)}`
  }
}
