import { encodeFunctionData, parseAbi } from 'viem'
import { artifact } from '#world/evm/artifact.ts'
import { type Address, depository } from '#world/evm/chains.ts'
import { depositoryProgram, depositoryState, depositoryVault } from '#world/solana/depository-accounts.ts'
import { associatedTokenProgram, memoProgram } from '#world/solana/programs.ts'
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

/** What names a quote: the id of the request, and that of the order in a deposit at the contract. */
export type QuoteIds = { id: Hex; orderId: Hex }

const depositCall = ({ user, input }: QuoteInput, orderId: Hex, units: bigint): EvmCall => {
  const { abi } = artifact('Depository')
  const [functionName, args, value] = input.metadata.isNative
    ? ['depositNative', [user, orderId], units]
    : ['depositErc20', [user, input.address, units, orderId], 0n]
  return {
    id: 'deposit',
    to: depository,
    data: encodeFunctionData({ abi, functionName, args }),
    value: value as bigint,
  }
}

export const evmDepositStep = (
  input: QuoteInput,
  { id, orderId }: QuoteIds,
  units: bigint,
  fees: EvmFees,
): Step => evmStep(input, id, depositCall(input, orderId, units), fees)

const key = (
  pubkey: string,
  { isSigner }: { isSigner: boolean },
  { isWritable }: { isWritable: boolean },
): AccountKey => ({
  pubkey,
  isSigner,
  isWritable,
})

const solanaTransfer = ({ user, input }: QuoteInput, units: bigint) => {
  const amount = u64(units)
  if (input.metadata.isNative) {
    const data = Buffer.concat([Uint8Array.of(2, 0, 0, 0), amount]).toString('hex')
    const keys = [
      key(user, { isSigner: true }, { isWritable: true }),
      key(solanaKey.address, { isSigner: false }, { isWritable: true }),
    ]
    return { keys, programId: systemProgram, data }
  }
  const keys = [
    key(tokenAccountOf(user, input.address), { isSigner: false }, { isWritable: true }),
    key(input.address, { isSigner: false }, { isWritable: false }),
    key(tokenAccountOf(solanaKey.address, input.address), { isSigner: false }, { isWritable: true }),
    key(user, { isSigner: true }, { isWritable: false }),
  ]
  const data = Buffer.concat([Uint8Array.of(12), amount, Uint8Array.of(input.decimals)]).toString('hex')
  return { keys, programId: tokenProgramOf(input.address), data }
}

/** A transfer to the solver, and a memo that names the request. */
export const transferInstructions = (input: QuoteInput, requestId: Hex, units: bigint) => [
  solanaTransfer(input, units),
  { keys: [], programId: memoProgram, data: Buffer.from(requestId).toString('hex') },
]

/** The first bytes of the two instructions. */
const depositTags = { native: '0d9e0ddf5fd51c06', token: '0b9c60da27a3b413' }

/** A deposit at the program, with the accounts in its order. */
export const programInstructions = ({ user, input }: QuoteInput, orderId: Hex, units: bigint) => {
  const { isNative } = input.metadata
  const parties = [
    key(depositoryState, { isSigner: false }, { isWritable: false }),
    key(user, { isSigner: true }, { isWritable: true }),
    key(user, { isSigner: false }, { isWritable: false }),
    key(depositoryVault, { isSigner: false }, { isWritable: isNative }),
  ]
  const ofToken = () => [
    key(input.address, { isSigner: false }, { isWritable: false }),
    key(tokenAccountOf(user, input.address), { isSigner: false }, { isWritable: true }),
    key(tokenAccountOf(depositoryVault, input.address), { isSigner: false }, { isWritable: true }),
    key(tokenProgramOf(input.address), { isSigner: false }, { isWritable: false }),
    key(associatedTokenProgram, { isSigner: false }, { isWritable: false }),
  ]
  const keys = [
    ...parties,
    ...(isNative ? [] : ofToken()),
    key(systemProgram, { isSigner: false }, { isWritable: false }),
  ]
  const tag = isNative ? depositTags.native : depositTags.token
  const data = `${tag}${Buffer.from(u64(units)).toString('hex')}${orderId.slice(2)}`
  return [{ keys, programId: depositoryProgram, data }]
}

/** The sender compiles the transaction. */
export const solanaDepositSteps = (
  input: QuoteInput,
  requestId: Hex,
  instructions: SolanaData['instructions'],
  addressLookupTableAddresses: string[],
): Step[] => [
  {
    id: 'deposit',
    ...textOf('deposit', input.input, input.output.symbol),
    kind: 'transaction',
    requestId,
    depositAddress: '',
    items: [
      {
        status: 'incomplete',
        data: { instructions, addressLookupTableAddresses },
        check: checkOf(requestId),
      },
    ],
  },
]
