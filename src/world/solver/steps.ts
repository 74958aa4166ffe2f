import { encodeFunctionData, parseAbi } from 'viem'
import { artifact } from '#world/evm/artifact.ts'
import { type Address, depository } from '#world/evm/chains.ts'
import { memoProgram } from '#world/solana/programs.ts'
import { type Currency, solanaKey, systemProgram, tokenAccountOf, tokenProgramOf } from './chains.ts'
import type { QuoteInput } from './quote-input.ts'
import type { Hex } from './request.ts'
import { u64 } from './u64.ts'

type EvmData = { from: string; to: string; data: string; value: string; chainId: number }
type AccountKey = { pubkey: string; isSigner: boolean; isWritable: boolean }
type SolanaData = {
  instructions: { keys: AccountKey[]; programId: string; data: string }[]
  addressLookupTableAddresses: string[]
}

export type Step = {
  id: 'approve' | 'deposit' | 'swap'
  action: string
  description: string
  kind: 'transaction'
  requestId: Hex
  depositAddress: string
  items: {
    status: 'incomplete'
    data: (EvmData & Record<string, unknown>) | SolanaData
    check?: { endpoint: string; method: 'GET' }
  }[]
}

const approveAbi = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function allowance(address owner, address spender) view returns (uint256)',
])

/** Fees as the node quotes them, in text as in the rest of the answer. */
export type EvmFees = { maxFeePerGas: string; maxPriorityFeePerGas: string }

export const checkOf = (id: Hex) => ({
  endpoint: `/intents/status/v3?requestId=${id}`,
  method: 'GET' as const,
})

const textOf = (
  id: Step['id'],
  { symbol }: Currency,
  target: string,
): { action: string; description: string } =>
  id === 'approve'
    ? { action: 'Confirm transaction in your wallet', description: `Sign an approval for ${symbol}` }
    : {
        action: 'Confirm transaction in your wallet',
        description:
          id === 'deposit'
            ? `Depositing funds to the relayer to execute the swap for ${target}`
            : `Swapping ${symbol} for ${target}`,
      }

type EvmCall = { id: Step['id']; to: string; data: Hex; value: bigint; gas?: bigint | undefined }

export const evmStep = (input: QuoteInput, requestId: Hex, call: EvmCall, fees: EvmFees): Step => ({
  id: call.id,
  ...textOf(call.id, input.input, input.output.symbol),
  kind: 'transaction',
  requestId,
  depositAddress: '',
  items: [
    {
      status: 'incomplete',
      data: {
        from: input.user,
        to: call.to.toLowerCase(),
        data: call.data,
        value: String(call.value),
        chainId: input.origin.id,
        ...(call.gas !== undefined && { gas: String(call.gas) }),
        ...fees,
      },
      ...(call.id !== 'approve' && { check: checkOf(requestId) }),
    },
  ],
})

export const approvalOf = ({ address }: Currency, spender: string, units: bigint): EvmCall => ({
  id: 'approve',
  to: address,
  data: encodeFunctionData({ abi: approveAbi, functionName: 'approve', args: [spender as Address, units] }),
  value: 0n,
})

export const allowanceCall = ({ address }: Currency, owner: string, spender: string) => ({
  to: address,
  data: encodeFunctionData({
    abi: approveAbi,
    functionName: 'allowance',
    args: [owner as Address, spender as Address],
  }),
})

const depositCall = ({ user, input }: QuoteInput, requestId: Hex, units: bigint): EvmCall => {
  const { abi } = artifact('Depository')
  const [functionName, args, value] = input.metadata.isNative
    ? ['depositNative', [user, requestId], units]
    : ['depositErc20', [user, input.address, units, requestId], 0n]
  return {
    id: 'deposit',
    to: depository,
    data: encodeFunctionData({ abi, functionName, args }),
    value: value as bigint,
  }
}

export const evmDepositStep = (input: QuoteInput, requestId: Hex, units: bigint, fees: EvmFees): Step =>
  evmStep(input, requestId, depositCall(input, requestId, units), fees)

const key = (pubkey: string, isSigner: boolean, isWritable: boolean): AccountKey => ({
  pubkey,
  isSigner,
  isWritable,
})

const solanaTransfer = ({ user, input }: QuoteInput, units: bigint) => {
  const amount = u64(units)
  if (input.metadata.isNative) {
    const data = Buffer.concat([Uint8Array.of(2, 0, 0, 0), amount]).toString('hex')
    const keys = [key(user, true, true), key(solanaKey.address, false, true)]
    return { keys, programId: systemProgram, data }
  }
  const keys = [
    key(tokenAccountOf(user, input.address), false, true),
    key(input.address, false, false),
    key(tokenAccountOf(solanaKey.address, input.address), false, true),
    key(user, true, false),
  ]
  const data = Buffer.concat([Uint8Array.of(12), amount, Uint8Array.of(input.decimals)]).toString('hex')
  return { keys, programId: tokenProgramOf(input.address), data }
}

/** A transfer to the solver, and a memo that names the request; the sender compiles the transaction. */
export const solanaDepositSteps = (
  input: QuoteInput,
  requestId: Hex,
  units: bigint,
  addressLookupTableAddresses: string[],
): Step[] => {
  const memo = { keys: [], programId: memoProgram, data: Buffer.from(requestId).toString('hex') }
  const data = { instructions: [solanaTransfer(input, units), memo], addressLookupTableAddresses }
  return [
    {
      id: 'deposit',
      ...textOf('deposit', input.input, input.output.symbol),
      kind: 'transaction',
      requestId,
      depositAddress: '',
      items: [{ status: 'incomplete', data, check: checkOf(requestId) }],
    },
  ]
}
