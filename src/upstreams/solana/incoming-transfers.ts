import { Fault } from '#kernel/contract/fault.ts'
import { historyPages } from './history-pages.ts'
import { svmDecoder } from './instruction-decoder.ts'
import { readArrival } from './landed-balance-changes.ts'
import { accountKeysOf, InvalidMessageError, splitTransaction } from './message.ts'
import { deriveTokenAccount } from './program-address.ts'
import { tokenPrograms } from './program-ids.ts'
import type { HistoryEntry, LandedTransaction, Solana } from './solana.ts'

/** Finds what was paid to a wallet, in the final part of its history. */

export type FoundTransfer = {
  signature: string
  slot: bigint
  /** The index among the transfers of one transaction; 0 is that of the native coin. */
  index: number
  /** The account that paid. If there are several or it is unknown, this is the payer of the fee. */
  payer: string
  token: string
  amountUnits: bigint
  memo: string | undefined
}
/**
 * A search reads no transaction before `fromSlot` and none that is already known. The search fails if the node does not
 * keep all blocks since `fromSlot`; with slot 0 it accepts whatever the node keeps.
 */
export type TransferSearch = {
  wallet: string
  tokens: readonly string[]
  fromSlot: bigint
  isKnown: (signatures: readonly string[]) => Promise<ReadonlySet<string>>
}
export type FoundTransfers = { transfers: FoundTransfer[]; searchedTo: bigint }

type PaymentChain = Pick<Solana, 'row' | 'height' | 'history' | 'transaction'>

const pagesMax = 10
const parallelMax = 10

export async function findTransfers(chain: PaymentChain, search: TransferSearch): Promise<FoundTransfers> {
  const { finality } = chain.row
  // The slot is read before the list, so that the next search finds transactions that become final meanwhile.
  const { slot: searchedTo } = await chain.height(finality)
  const signatures = await listedSince(chain, search)
  const known = await search.isKnown([...signatures])
  const unknown = [...signatures].filter((signature) => !known.has(signature))
  const transfers: FoundTransfer[] = []
  for (let at = 0; at < unknown.length; at += parallelMax) {
    const batch = unknown.slice(at, at + parallelMax)
    const landed = await Promise.all(batch.map((signature) => chain.transaction(signature, finality)))
    for (const [index, each] of landed.entries()) {
      // The node that listed the transaction may be ahead of the one that is asked for its record.
      if (!each)
        throw new Fault('unavailable', `A ${chain.row.displayName} node lacks a transaction it listed`)
      transfers.push(
        ...transfersTo(each, { ...search, signature: batch[index]!, native: chain.row.native.address }),
      )
    }
  }
  return { transfers, searchedTo }
}

/** Returns the successful transactions of the wallet and of its token accounts. */
async function listedSince(
  chain: PaymentChain,
  { wallet, tokens, fromSlot }: Pick<TransferSearch, 'wallet' | 'tokens' | 'fromSlot'>,
): Promise<Set<string>> {
  // A transfer of tokens names only the token account.
  const accounts = tokens.flatMap((mint) =>
    mint === chain.row.native.address
      ? []
      : tokenPrograms.map((program) => deriveTokenAccount(wallet, mint, program)),
  )
  const signatures = new Set<string>()
  for (const address of [wallet, ...accounts])
    for (const entry of await historySince(chain, address, fromSlot))
      if (!entry.failed) signatures.add(entry.signature)
  return signatures
}

async function historySince(chain: PaymentChain, address: string, fromSlot: bigint): Promise<HistoryEntry[]> {
  const found: HistoryEntry[] = []
  const range = { commitment: chain.row.finality, since: fromSlot > 0n ? fromSlot : undefined }
  let pages = 0
  for await (const page of historyPages(chain, address, range)) {
    if (pages++ === pagesMax)
      throw new Fault('unavailable', `${address} has too many new transactions on ${chain.row.displayName}`)
    found.push(...page.filter(({ slot }) => slot >= fromSlot))
    if (page.some(({ slot }) => slot < fromSlot)) break
  }
  return found
}

type Target = { wallet: string; tokens: readonly string[]; signature: string; native: string }

/**
 * Returns what a transaction paid to a wallet, by token. The amounts are those of the single transfers if the transfers
 * in the message add up to the whole gain, or else one sum.
 */
export function paymentsTo(landed: LandedTransaction, owner: string, native: string): Map<string, bigint[]> {
  const stated = transfersIn(Buffer.from(landed.raw, 'base64'), owner, native)
  const unitsOf = (token: string, gained: bigint): bigint[] => {
    const units = stated.filter((each) => each.token === token).map(({ amountUnits }) => amountUnits)
    return units.reduce((sum, each) => sum + each, 0n) === gained ? units : [gained]
  }
  const gains = [...readArrival(landed, owner, native)]
  return new Map(gains.map(([token, gained]) => [token, unitsOf(token, gained)]))
}

function transfersIn(bytes: Uint8Array, owner: string, native: string) {
  const instructions = messageOf(bytes)?.instructions ?? []
  return instructions.flatMap((each) => {
    const read = svmDecoder.decodeInstruction(each)
    if (read?.name === 'transfer_lamports' && read.to === owner)
      return [{ token: native, amountUnits: read.lamports }]
    if (read?.name !== 'transfer_tokens') return []
    const { mint, tokenProgram, to, amountUnits } = read
    return to === deriveTokenAccount(owner, mint, tokenProgram) ? [{ token: mint, amountUnits }] : []
  })
}

export type WalletChange = { signature: string; slot: bigint; units: ReadonlyMap<string, bigint> }
const changesMax = 100

/** Returns a wallet's final transactions since the slot; undefined if there are too many, or one is missing. */
export async function walletChanges(
  chain: PaymentChain,
  { wallet, tokens, fromSlot }: Pick<TransferSearch, 'wallet' | 'tokens' | 'fromSlot'>,
): Promise<WalletChange[] | undefined> {
  const { finality, native } = chain.row
  const signatures = [...(await listedSince(chain, { wallet, tokens, fromSlot }))]
  if (signatures.length > changesMax) return undefined
  const changes: WalletChange[] = []
  for (const signature of signatures) {
    const landed = await chain.transaction(signature, finality)
    if (!landed) return undefined
    const units = new Map(
      tokens.map((token) => [token, unitsIn(landed, { wallet, token, native: native.address })]),
    )
    changes.push({ signature, slot: landed.slot, units })
  }
  return changes.toSorted((one, other) => Number(one.slot - other.slot))
}

type Held = { wallet: string; token: string; native: string }

function unitsIn(landed: LandedTransaction, { wallet, token, native }: Held): bigint {
  if (token === native) {
    const at = accountKeysOf(Buffer.from(landed.raw, 'base64')).indexOf(wallet)
    return (landed.lamportsAfter[at] ?? 0n) - (landed.lamportsBefore[at] ?? 0n)
  }
  const sum = (balances: LandedTransaction['tokensAfter']) =>
    balances
      .filter((each) => each.owner === wallet && each.mint === token)
      .reduce((total, { amountUnits }) => total + amountUnits, 0n)
  return sum(landed.tokensAfter) - sum(landed.tokensBefore)
}

/** Computes transfers from the balances around the transaction, whatever program moved them. */
export function transfersTo(landed: LandedTransaction, target: Target): FoundTransfer[] {
  const { wallet, tokens, signature, native } = target
  if (landed.failure !== undefined) return []
  const bytes = Buffer.from(landed.raw, 'base64')
  const keys = accountKeysOf(bytes)
  const gained = (token: string) => unitsIn(landed, { wallet, token, native })
  const { payer = keys[0] ?? '', memo } = statedBy(bytes, wallet)
  const of = { signature, slot: landed.slot, payer, memo }
  return [
    { ...of, index: 0, token: native, amountUnits: gained(native) },
    ...tokens.map((token, index) => ({ ...of, index: index + 1, token, amountUnits: gained(token) })),
  ].filter(({ amountUnits }) => amountUnits > 0n)
}

/** Returns who transfers to the wallet, and the memo, if the message states exactly one of each. */
function statedBy(
  bytes: Uint8Array,
  wallet: string,
): { payer?: string | undefined; memo?: string | undefined } {
  const message = messageOf(bytes)
  const decoded = (message?.instructions ?? []).flatMap((each) => svmDecoder.decodeInstruction(each) ?? [])
  const payers = decoded.flatMap((each) =>
    each.name === 'transfer_lamports' && each.to === wallet ? [each.from] : [],
  )
  const memos = decoded.flatMap((each) => (each.name === 'memo' ? [each.text] : []))
  return {
    payer: payers.length === 1 ? payers[0] : undefined,
    memo: memos.length === 1 ? memos[0] : undefined,
  }
}

/** Decodes the message of a transaction; undefined if its form is not the one that the gateway makes. */
function messageOf(bytes: Uint8Array) {
  try {
    return svmDecoder.decodeMessage(splitTransaction(bytes).message)
  } catch (error) {
    if (error instanceof InvalidMessageError) return undefined
    throw error
  }
}
