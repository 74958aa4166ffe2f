import type { SvmDeposit, SvmInstruction } from '#kernel/task/signer.ts'
import { deriveTokenAccount } from './program-address.ts'
import {
  associatedTokenProgram,
  computeBudgetProgram,
  computeLimitTag,
  computePriceTag,
  createIdempotentTag,
  depositNativeTag,
  depositTokenTag,
  memoProgram,
  systemProgram,
  systemTransferTag,
  tokenCloseAccountTag,
  tokenTransferCheckedTag,
} from './program-ids.ts'

type Role = SvmInstruction['accounts'][number]
const readonly = (address: string): Role => ({ address, isSigner: false, isWritable: false })
const writable = (address: string): Role => ({ address, isSigner: false, isWritable: true })
const signer = (address: string): Role => ({ address, isSigner: true, isWritable: false })
const writableSigner = (address: string): Role => ({ address, isSigner: true, isWritable: true })

function hexOf(...parts: (number | bigint)[]): string {
  return Buffer.concat(parts.map(integerBytes)).toString('hex')
}
/** A number is one byte, and a bigint is a u64. */
function integerBytes(part: number | bigint): Uint8Array {
  if (typeof part === 'number') return Uint8Array.of(part)
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(part)
  return bytes
}

export type TokenMint = { mint: string; decimals: number; tokenProgram: string }

export const transferLamports = (from: string, to: string, lamports: bigint): SvmInstruction => ({
  programId: systemProgram,
  accounts: [writableSigner(from), writable(to)],
  data: hexOf(systemTransferTag, 0, 0, 0, lamports),
})

/** Transfers from the owner's token account to that of another owner, which must exist. */
export const transferTokens = (
  { mint, decimals, tokenProgram: program }: TokenMint,
  from: string,
  to: string,
  amountUnits: bigint,
): SvmInstruction => ({
  programId: program,
  accounts: [
    writable(deriveTokenAccount(from, mint, program)),
    readonly(mint),
    writable(deriveTokenAccount(to, mint, program)),
    signer(from),
  ],
  data: hexOf(tokenTransferCheckedTag, amountUnits, decimals),
})

/** Creates the owner's token account of a mint; the instruction does nothing if the account exists. */
export const createTokenAccount = (
  { mint, tokenProgram: program }: Pick<TokenMint, 'mint' | 'tokenProgram'>,
  owner: string,
  payer: string,
): SvmInstruction => ({
  programId: associatedTokenProgram,
  accounts: [
    writableSigner(payer),
    writable(deriveTokenAccount(owner, mint, program)),
    readonly(owner),
    readonly(mint),
    readonly(systemProgram),
    readonly(program),
  ],
  data: hexOf(createIdempotentTag),
})

/** Closes an empty token account, and sends its rent to the receiver. */
export const closeTokenAccount = (
  { account, tokenProgram }: { account: string; tokenProgram: string },
  owner: string,
  receiver: string,
): SvmInstruction => ({
  programId: tokenProgram,
  accounts: [writable(account), writable(receiver), signer(owner)],
  data: hexOf(tokenCloseAccountTag),
})

/**
 * Deposits at Relay's depository. The instruction names every account that the program requires and that custody
 * checks.
 */
export function depositAtDepository(deposit: SvmDeposit): SvmInstruction {
  const { program, state, sender, depositor, vault, token, amountUnits, depositId } = deposit
  const parties = [readonly(state), writableSigner(sender), readonly(depositor)]
  const data = (tag: string) => `${tag}${hexOf(amountUnits)}${depositId.slice(2)}`
  if (token === null)
    return {
      programId: program,
      accounts: [...parties, writable(vault), readonly(systemProgram)],
      data: data(depositNativeTag),
    }
  const { mint, tokenProgram, source, vaultAccount } = token
  const accounts = [
    ...parties,
    readonly(vault),
    readonly(mint),
    writable(source),
    writable(vaultAccount),
    readonly(tokenProgram),
    readonly(associatedTokenProgram),
    readonly(systemProgram),
  ]
  return { programId: program, accounts, data: data(depositTokenTag) }
}

export const memo = (text: string): SvmInstruction => ({
  programId: memoProgram,
  accounts: [],
  data: Buffer.from(text).toString('hex'),
})

const u32Bytes = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff)

/** Sets the limit of compute units. `named` are accounts that the program ignores. */
export const computeLimit = (units: number, named: readonly string[] = []): SvmInstruction => ({
  programId: computeBudgetProgram,
  accounts: named.map(readonly),
  data: hexOf(computeLimitTag, ...u32Bytes(units)),
})

export const computePrice = (microLamports: bigint): SvmInstruction => ({
  programId: computeBudgetProgram,
  accounts: [],
  data: hexOf(computePriceTag, microLamports),
})
