import type { DecodedInstruction, DecodedMessage, SvmDecoder } from '#kernel/task/signer.ts'
import { decodeMessage, InvalidMessageError } from './message.ts'
import { deriveTokenAccount } from './program-address.ts'
import {
  associatedTokenProgram,
  computeBudgetProgram,
  computeLimitTag,
  computePriceTag,
  createIdempotentTag,
  depositNativeTag,
  depositoryProgram,
  depositTokenTag,
  memoProgram,
  systemProgram,
  systemTransferTag,
  tokenCloseAccountTag,
  tokenPrograms,
  tokenTransferCheckedTag,
} from './program-ids.ts'

type Instruction = DecodedMessage['instructions'][number]
type Read = (
  data: DataView,
  accounts: readonly string[],
  instruction: Instruction,
) => DecodedInstruction | undefined

/** Requires exactly this many bytes and accounts, because more of either would change what the program does. */
const exactly =
  (bytes: number, accountCount: number, read: Read): Read =>
  (data, accounts, instruction) =>
    data.byteLength === bytes && accounts.length === accountCount
      ? read(data, accounts, instruction)
      : undefined

const transferLamports = exactly(12, 2, (data, [from, to]) =>
  data.getUint32(0, true) === systemTransferTag
    ? { name: 'transfer_lamports', from: from!, to: to!, lamports: data.getBigUint64(4, true) }
    : undefined,
)

const transferTokens = exactly(10, 4, (data, [source, mint, to, authority], { programId }) =>
  data.getUint8(0) === tokenTransferCheckedTag
    ? {
        name: 'transfer_tokens',
        tokenProgram: programId,
        source: source!,
        mint: mint!,
        to: to!,
        authority: authority!,
        amountUnits: data.getBigUint64(1, true),
      }
    : undefined,
)

const closeTokenAccount = exactly(1, 3, (data, [account, to, owner]) =>
  data.getUint8(0) === tokenCloseAccountTag
    ? { name: 'close_token_account', account: account!, to: to!, owner: owner! }
    : undefined,
)

const createTokenAccount = exactly(1, 6, (data, [payer, account, owner, mint, system, tokenProgram]) =>
  data.getUint8(0) === createIdempotentTag && system === systemProgram
    ? {
        name: 'create_token_account',
        payer: payer!,
        account: account!,
        owner: owner!,
        mint: mint!,
        tokenProgram: tokenProgram!,
      }
    : undefined,
)

const computeBudget: Read = (data, [reference, ...others], { accounts }) => {
  const isReferenceRead = accounts.every(({ isSigner, isWritable }) => !isSigner && !isWritable)
  if (others.length > 0 || !isReferenceRead || data.byteLength < 1) return undefined
  const tag = data.getUint8(0)
  if (tag === computeLimitTag && data.byteLength === 5) {
    const units = BigInt(data.getUint32(1, true))
    return { name: 'compute_limit', units, ...(reference !== undefined && { reference }) }
  }
  if (reference !== undefined) return undefined
  if (tag === computePriceTag && data.byteLength === 9)
    return { name: 'compute_price', microLamports: data.getBigUint64(1, true) }
  return undefined
}

const memo: Read = (data, accounts) => ({
  name: 'memo',
  signers: [...accounts],
  text: new TextDecoder().decode(data),
})

const depositBytes = 48

/** Reads the data of a deposit: a tag for SOL or a token in the first bytes, an amount, and an id of 32 bytes. */
const depositAt = (data: DataView) => {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  return {
    tag: bytes.subarray(0, 8).toString('hex'),
    amountUnits: data.getBigUint64(8, true),
    depositId: `0x${bytes.subarray(16).toString('hex')}`,
  }
}

const depositNative = exactly(depositBytes, 5, (data, accounts, { programId: program }) => {
  const { tag, ...deposit } = depositAt(data)
  const [state, sender, depositor, vault, system] = accounts
  return tag === depositNativeTag && system === systemProgram
    ? {
        name: 'bridge',
        program,
        state: state!,
        sender: sender!,
        depositor: depositor!,
        vault: vault!,
        token: null,
        ...deposit,
      }
    : undefined
})

const depositToken = exactly(depositBytes, 10, (data, accounts, { programId: program }) => {
  const { tag, ...deposit } = depositAt(data)
  const [state, sender, depositor, vault, mint, source, vaultAccount, tokens, associated, system] = accounts
  const isKnown = tokenPrograms.some((each) => each === tokens) && associated === associatedTokenProgram
  return tag === depositTokenTag && isKnown && system === systemProgram
    ? {
        name: 'bridge',
        program,
        state: state!,
        sender: sender!,
        depositor: depositor!,
        vault: vault!,
        token: { mint: mint!, tokenProgram: tokens!, source: source!, vaultAccount: vaultAccount! },
        ...deposit,
      }
    : undefined
})

/** The readers of each program; the token programs share their first instructions. */
const readers: ReadonlyMap<string, readonly Read[]> = new Map<string, readonly Read[]>([
  [systemProgram, [transferLamports]],
  ...tokenPrograms.map((program) => [program, [transferTokens, closeTokenAccount]] as const),
  [associatedTokenProgram, [createTokenAccount]],
  [computeBudgetProgram, [computeBudget]],
  [memoProgram, [memo]],
  [depositoryProgram, [depositNative, depositToken]],
])

/**
 * An account from a lookup table cannot be checked here. It becomes an empty address, which equals no address,
 * if the program itself verifies it; if a rule of custody depends on it, the instruction is not decoded.
 */
function decodeInstruction(instruction: Instruction): DecodedInstruction | undefined {
  const { programId, accounts, data } = instruction
  const addresses = accounts.map(({ address }) => address ?? '')
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  for (const read of readers.get(programId) ?? []) {
    const decoded = read(view, addresses, instruction)
    if (decoded) return checkedAddresses(decoded).includes('') ? undefined : decoded
  }
  return undefined
}

/** Returns the addresses by which custody checks an instruction; they must be in the message itself. */
export function checkedAddresses(decoded: DecodedInstruction): string[] {
  switch (decoded.name) {
    case 'transfer_lamports':
      return [decoded.from, decoded.to]
    case 'transfer_tokens':
      return [decoded.to, decoded.authority, decoded.mint]
    case 'create_token_account':
      return [decoded.payer, decoded.owner]
    case 'close_token_account':
      return [decoded.to, decoded.owner]
    case 'compute_limit':
      return decoded.reference === undefined ? [] : [decoded.reference]
    case 'memo':
      return decoded.signers
    case 'bridge': {
      const { state, sender, depositor, vault, token } = decoded
      const ofToken = token === null ? [] : [token.mint, token.source, token.vaultAccount]
      return [state, sender, depositor, vault, ...ofToken]
    }
    default:
      return []
  }
}

export const svmDecoder: SvmDecoder = {
  decodeMessage(message) {
    try {
      return decodeMessage(message)
    } catch (error) {
      if (error instanceof InvalidMessageError) return undefined
      throw error
    }
  },
  decodeInstruction,
  tokenAccountOf: deriveTokenAccount,
}
