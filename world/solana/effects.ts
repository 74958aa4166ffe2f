import type { AccountLookup } from './account.ts'
import { tableAddresses } from './lookup-table.ts'
import { isWritable, type Message, type ResolvedKeys } from './message.ts'
import { computeBudgetProgram, memoProgram, memoProgramV1 } from './programs.ts'
import { readMint, readTokenAccount, u32At, u64At, uiAmount } from './token-layout.ts'

const lamportsPerSignature = 5_000n
const microLamports = 1_000_000n

/** Static keys plus those of the lookup tables; undefined when a table or an index does not exist. */
export const resolveKeys = (message: Message, account: AccountLookup): ResolvedKeys | undefined => {
  const writable: (string | undefined)[] = []
  const readonly: (string | undefined)[] = []
  for (const { accountKey, writableIndexes, readonlyIndexes } of message.addressTableLookups) {
    const table = account(accountKey)
    const addresses = (table && tableAddresses(table)) ?? []
    writable.push(...writableIndexes.map((index) => addresses[index]))
    readonly.push(...readonlyIndexes.map((index) => addresses[index]))
  }
  const known = (key: string | undefined): key is string => key !== undefined
  if (!writable.every(known) || !readonly.every(known)) return undefined
  return { keys: [...message.accountKeys, ...writable, ...readonly], writable, readonly }
}

export const writableKeys = (message: Message, { keys, writable }: ResolvedKeys): string[] =>
  keys.filter((_, index) => isWritable(message, writable.length, index))

const unitsMax = 1_400_000n
const builtinPrograms = new Set([computeBudgetProgram, '11111111111111111111111111111111'])

/** 5000 per signature plus the priority fee of the compute budget instructions. */
export const feeOf = (message: Message): bigint => {
  let price = 0n
  let limit: bigint | undefined
  let defaultLimit = 0n
  for (const { programIdIndex, data } of message.instructions) {
    const program = message.accountKeys[programIdIndex] ?? ''
    defaultLimit += builtinPrograms.has(program) ? 3_000n : 200_000n
    if (program !== computeBudgetProgram) continue
    if (data[0] === 2 && data.length >= 5) limit = BigInt(u32At(data, 1))
    if (data[0] === 3 && data.length >= 9) price = u64At(data, 1)
  }
  const units = limit ?? defaultLimit
  const priority = price * (units < unitsMax ? units : unitsMax)
  return (
    BigInt(message.header.numRequiredSignatures) * lamportsPerSignature +
    (priority + microLamports - 1n) / microLamports
  )
}

export const memoOf = (message: Message): string | null => {
  const texts = message.instructions.flatMap(({ programIdIndex, data }) => {
    const program = message.accountKeys[programIdIndex]
    return program === memoProgram || program === memoProgramV1
      ? [`[${data.length}] ${Buffer.from(data).toString('utf8')}`]
      : []
  })
  return texts.length === 0 ? null : texts.join('; ')
}

export type TokenBalance = {
  accountIndex: number
  mint: string
  owner: string
  programId: string
  uiTokenAmount: ReturnType<typeof uiAmount>
}
export type Balances = { lamports: bigint[]; tokens: TokenBalance[] }

type BalanceReader = {
  lamports: (address: string) => bigint
  isTokenAccount: (address: string) => boolean
  account: AccountLookup
}

/** Balances of every account of a transaction; copies no account without tokens, because programs are large. */
export const balancesOf = (
  keys: string[],
  { lamports, isTokenAccount, account }: BalanceReader,
): Balances => ({
  lamports: keys.map(lamports),
  tokens: keys.flatMap((key, accountIndex) => {
    const found = isTokenAccount(key) ? account(key) : undefined
    if (found === undefined) return []
    const { mint, owner, amount } = readTokenAccount(found.data)
    const mintAccount = account(mint)
    const decimals = mintAccount === undefined ? 0 : readMint(mintAccount.data).decimals
    return [{ accountIndex, mint, owner, programId: found.owner, uiTokenAmount: uiAmount(amount, decimals) }]
  }),
})
