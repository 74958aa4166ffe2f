import type { Rpc } from '#world/evm/rpc.ts'
import { depositoryState } from '#world/solana/depository-accounts.ts'
import { requireChain, solanaChainId, solanaKey, systemProgram, tokenAccountOf } from './chains.ts'
import type { Deposit, Hex } from './request.ts'
import { loggedDeposits } from './solana-events.ts'

const pageMax = 1_000

/** The newest signature that was read for each account of the solver. */
export type Cursors = Record<string, string>

type SignatureRow = { signature: string; slot: number; err: unknown; memo: string | null }
type Instruction = { program?: string; parsed?: string | { type: string; info: Record<string, unknown> } }
type Transaction = {
  meta: {
    err: unknown
    preTokenBalances: TokenBalance[]
    postTokenBalances: TokenBalance[]
    logMessages: string[] | null
  }
  transaction: { message: { accountKeys: { pubkey: string }[]; instructions: Instruction[] } }
} | null
type TokenBalance = { accountIndex: number; mint: string; uiTokenAmount: { amount: string } }

type Transfer = { from: string; currency: string; units: bigint }

/** Accounts that receive transfers, with their currency. */
const accounts = (): Map<string, string> => {
  const { native, tokens } = requireChain(solanaChainId)
  const ofTokens = tokens.map(({ address }) => [tokenAccountOf(solanaKey.address, address), address] as const)
  return new Map([[solanaKey.address, native.address], ...ofTokens])
}
const depositAccounts = accounts()

const transferOf = ({ program, parsed }: Instruction): Transfer | undefined => {
  if (typeof parsed !== 'object') return undefined
  const { type, info } = parsed
  const currency = depositAccounts.get(String(info.destination))
  if (currency === undefined) return undefined
  if (program === 'system' && type === 'transfer' && currency === systemProgram)
    return { from: String(info.source), currency, units: BigInt(String(info.lamports)) }
  if (!program?.startsWith('spl-token') || currency === systemProgram) return undefined
  const amount = type === 'transferChecked' ? (info.tokenAmount as { amount: string }).amount : info.amount
  if (type !== 'transferChecked' && type !== 'transfer') return undefined
  const authority = info.authority ?? info.multisigAuthority
  return { from: String(authority), currency, units: BigInt(String(amount)) }
}

/** A transfer fee makes the received amount smaller than the transferred one. */
const receivedOf = (transaction: NonNullable<Transaction>, currency: string, units: bigint): bigint => {
  if (currency === systemProgram) return units
  const { accountKeys } = transaction.transaction.message
  const account = tokenAccountOf(solanaKey.address, currency)
  const amountIn = (balances: TokenBalance[]): bigint =>
    BigInt(
      balances.find(({ accountIndex }) => accountKeys[accountIndex]?.pubkey === account)?.uiTokenAmount
        .amount ?? '0',
    )
  const received = amountIn(transaction.meta.postTokenBalances) - amountIn(transaction.meta.preTokenBalances)
  return received < units ? received : units
}

const depositsIn = (row: SignatureRow, transaction: NonNullable<Transaction>, nowMs: number): Deposit[] => {
  const deposits: Deposit[] = loggedDeposits(transaction.meta.logMessages ?? []).map(
    ({ from, currency, units, id }, place) => ({
      key: `${solanaChainId}:${row.signature}#${place}`,
      requestId: id,
      chainId: solanaChainId,
      from,
      currency,
      units: String(units),
      txHash: row.signature,
      block: row.slot,
      seenMs: nowMs,
    }),
  )
  let transfers: Transfer[] = []
  for (const instruction of transaction.transaction.message.instructions) {
    const transfer = transferOf(instruction)
    if (transfer) transfers.push(transfer)
    const id = instruction.program === 'spl-memo' ? String(instruction.parsed).trim() : ''
    const [first] = transfers
    if (!/^0x[0-9a-f]{64}$/i.test(id) || !first) continue
    // A memo belongs to the transfers before it.
    const units = transfers
      .filter(({ currency }) => currency === first.currency)
      .reduce((sum, each) => sum + each.units, 0n)
    deposits.push({
      key: `${solanaChainId}:${row.signature}#${deposits.length}`,
      requestId: id.toLowerCase() as Hex,
      chainId: solanaChainId,
      from: first.from,
      currency: first.currency,
      units: String(receivedOf(transaction, first.currency, units)),
      txHash: row.signature,
      block: row.slot,
      seenMs: nowMs,
    })
    transfers = []
  }
  return deposits
}

const pageConfig = (until: string | undefined, before?: string) => ({
  commitment: 'confirmed',
  limit: pageMax,
  ...(until !== undefined && { until }),
  ...(before !== undefined && { before }),
})

/** The rest of the signatures since the cursor, newest first; most scans find none. */
const olderSignatures = async (
  rpc: Rpc,
  account: string,
  until: string | undefined,
  newest: readonly SignatureRow[],
): Promise<SignatureRow[]> => {
  const found = [...newest]
  for (let size = newest.length; size === pageMax; ) {
    const params = [account, pageConfig(until, found.at(-1)?.signature)]
    const page = (await rpc.call('getSignaturesForAddress', params)) as SignatureRow[]
    found.push(...page)
    size = page.length
  }
  return found
}

const newestSignatures = async (rpc: Rpc, accounts: readonly string[], cursors: Cursors) => {
  const ask = (from: Cursors) =>
    rpc.batch(
      accounts.map((account) => ({
        method: 'getSignaturesForAddress',
        params: [account, pageConfig(from[account])],
      })),
    ) as Promise<SignatureRow[][]>
  try {
    return { pages: await ask(cursors), from: cursors }
  } catch (error) {
    // A chain that lost the newest transactions is read from its beginning; known deposits are recognised.
    if (!/not found/i.test((error as Error).message)) throw error
    return { pages: await ask({}), from: {} }
  }
}

export const scanDeposits = async (
  rpc: Rpc,
  before: Cursors,
  nowMs: number,
): Promise<{ deposits: Deposit[]; cursors: Cursors }> => {
  const rows = new Map<string, SignatureRow>()
  const cursors = { ...before }
  const listedAccounts = [depositoryState, ...depositAccounts.keys()]
  const { pages, from } = await newestSignatures(rpc, listedAccounts, before)
  for (const [index, account] of listedAccounts.entries()) {
    const listed = await olderSignatures(rpc, account, from[account], pages[index] ?? [])
    if (listed[0]) cursors[account] = listed[0].signature
    for (const row of listed.reverse())
      if (row.err === null && (row.memo !== null || account === depositoryState)) rows.set(row.signature, row)
  }
  const deposits: Deposit[] = []
  for (const row of rows.values()) {
    const config = { encoding: 'jsonParsed', commitment: 'confirmed', maxSupportedTransactionVersion: 0 }
    const transaction = (await rpc.call('getTransaction', [row.signature, config])) as Transaction
    if (transaction) deposits.push(...depositsIn(row, transaction, nowMs))
  }
  return { deposits, cursors }
}
