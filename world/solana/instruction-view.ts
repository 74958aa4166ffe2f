import { toBase58 } from './base58.ts'
import {
  associatedTokenProgram,
  isTokenProgram,
  memoProgram,
  memoProgramV1,
  systemProgram,
  token2022Program,
} from './programs.ts'
import { u32At, u64At, uiAmount } from './token-layout.ts'

export type ReadInstruction = { program: string; accounts: string[]; data: Uint8Array }
type Parsed = { type: string; info: Record<string, unknown> }

const system = ({ accounts, data }: ReadInstruction): Parsed | undefined => {
  const [source, second] = accounts
  if (data.length < 4) return undefined
  const kind = u32At(data, 0)
  if (kind === 2 && data.length >= 12) {
    return { type: 'transfer', info: { source, destination: second, lamports: u64At(data, 4) } }
  }
  if (kind === 0 && data.length >= 52) {
    const info = {
      source,
      newAccount: second,
      lamports: u64At(data, 4),
      space: u64At(data, 12),
      owner: toBase58(data.subarray(20, 52)),
    }
    return { type: 'createAccount', info }
  }
  return undefined
}

/** A multisig authority is followed by its signers; a node then uses another name. */
const authority = (name: string, accounts: string[], at: number): Record<string, unknown> =>
  accounts.length > at + 1
    ? { [`multisig${name[0]?.toUpperCase()}${name.slice(1)}`]: accounts[at], signers: accounts.slice(at + 1) }
    : { [name]: accounts[at] }

const token = ({ accounts, data }: ReadInstruction): Parsed | undefined => {
  const [first, second, third] = accounts
  const amount = data.length >= 9 ? u64At(data, 1) : 0n
  const checked = (): unknown => uiAmount(amount, data[9] ?? 0)
  switch (data[0]) {
    case 3: {
      const info = {
        source: first,
        destination: second,
        amount: amount.toString(),
        ...authority('authority', accounts, 2),
      }
      return { type: 'transfer', info }
    }
    case 7: {
      const info = {
        mint: first,
        account: second,
        amount: amount.toString(),
        ...authority('mintAuthority', accounts, 2),
      }
      return { type: 'mintTo', info }
    }
    case 8: {
      const info = {
        account: first,
        mint: second,
        amount: amount.toString(),
        ...authority('authority', accounts, 2),
      }
      return { type: 'burn', info }
    }
    case 9:
      return {
        type: 'closeAccount',
        info: { account: first, destination: second, ...authority('owner', accounts, 2) },
      }
    case 12: {
      const info = { source: first, mint: second, destination: third, tokenAmount: checked() }
      return { type: 'transferChecked', info: { ...info, ...authority('authority', accounts, 3) } }
    }
    case 14: {
      const info = {
        mint: first,
        account: second,
        tokenAmount: checked(),
        ...authority('mintAuthority', accounts, 2),
      }
      return { type: 'mintToChecked', info }
    }
    case 17:
      return { type: 'syncNative', info: { account: first } }
    default:
      return undefined
  }
}

const associatedToken = ({ accounts, data }: ReadInstruction): Parsed | undefined => {
  const [source, account, wallet, mint, systemId, tokenId] = accounts
  if (data.length > 1 || (data[0] ?? 0) > 1) return undefined
  const info = { source, account, wallet, mint, systemProgram: systemId, tokenProgram: tokenId }
  return { type: data[0] === 1 ? 'createIdempotent' : 'create', info }
}

const parse = (read: ReadInstruction): { program: string; parsed: unknown } | undefined => {
  const named = (program: string, parsed: Parsed | undefined) => parsed && { program, parsed }
  if (read.program === systemProgram) return named('system', system(read))
  if (isTokenProgram(read.program)) {
    return named(read.program === token2022Program ? 'spl-token-2022' : 'spl-token', token(read))
  }
  if (read.program === associatedTokenProgram) {
    return named('spl-associated-token-account', associatedToken(read))
  }
  if (read.program === memoProgram || read.program === memoProgramV1) {
    return { program: 'spl-memo', parsed: Buffer.from(read.data).toString('utf8') }
  }
  return undefined
}

/** The jsonParsed form; an unknown instruction has its accounts and base58 data, as on a node. */
export const parsedInstruction = (read: ReadInstruction, stackHeight: number | null) => {
  const parsed = parse(read)
  return parsed === undefined
    ? { programId: read.program, accounts: read.accounts, data: toBase58(read.data), stackHeight }
    : { ...parsed, programId: read.program, stackHeight }
}
