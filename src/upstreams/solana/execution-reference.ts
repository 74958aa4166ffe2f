import { createLru } from '#kernel/async/create-lru.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { uuidOf } from '#kernel/id.ts'
import type { NamedExecution } from '#kernel/task/execution-id.ts'
import { blockTimeErrorMs } from './address-history.ts'
import { addressBytes, base58, fromBase58 } from './base58.ts'
import { historyPages, pageMax } from './history-pages.ts'
import { accountKeysOf, decodeMessage, InvalidMessageError, splitTransaction } from './message.ts'
import type { LandedTransaction, Solana } from './solana.ts'

/**
 * A reference is the address by which the transaction of an execution is found, as in Solana Pay: an account
 * that the message names and nothing reads. A chain without account nonces keeps no other trace of a
 * transaction's purpose.
 */

/** A reference begins with these bytes; the rest is free, because no key or program has such an address. */
const tag = Buffer.from('portico exec')

export function referenceOf({ executionId, sequence }: NamedExecution): string {
  const counted = Buffer.alloc(addressBytes - tag.length - 16)
  counted.writeUInt32BE(sequence)
  return base58(Buffer.concat([tag, counted, Buffer.from(executionId.replaceAll('-', ''), 'hex')]))
}

/**
 * Returns the execution that a reference names, or undefined for an address that is no reference of the gateway.
 */
export function executionOfReference(address: string): NamedExecution | undefined {
  const bytes = fromBase58(address, addressBytes)
  if (!bytes || !tag.equals(bytes.subarray(0, tag.length))) return undefined
  const executionId = uuidOf(Buffer.from(bytes.subarray(addressBytes - 16)).toString('hex'))
  return { executionId, sequence: Buffer.from(bytes).readUInt32BE(tag.length) }
}

export type FoundTransaction = { signature: string; landed: LandedTransaction }
/**
 * The account executed nothing before `since`. A search ends without a result only if the node keeps all blocks
 * since then; otherwise it fails.
 */
export type Search = { reference: string; account: string; since: Date }
type SearchedChain = Pick<Solana, 'row' | 'history' | 'transaction'>

export type ReferenceSearch = (search: Search) => Promise<FoundTransaction | undefined>

/**
 * At most this many pages are listed, because anybody can name a known reference in a transaction for the price of its
 * fee.
 */
const namedPagesMax = 50
/** At most this many transactions are read in one search; the next one continues. */
const readMax = 100

/** Searches for the transaction that names the reference, is signed by the account, and did not fail. */
export function referenceSearch(chain: SearchedChain): ReferenceSearch {
  /** Transactions that name a reference but that the account did not sign; cached, because signers never change. */
  const foreign = createLru<string, true>(namedPagesMax * pageMax)

  /** The message is the same at every commitment, so a foreign transaction need not be final to be recognised. */
  const readOwn = async (signature: string, account: string): Promise<LandedTransaction | undefined> => {
    const seen = await chain.transaction(signature, 'confirmed')
    if (seen && !signersOf(seen).includes(account)) {
      foreign.set(`${account} ${signature}`, true)
      return undefined
    }
    const landed = seen && (await chain.transaction(signature, chain.row.finality))
    // The transaction is not final yet, or the node that listed it is ahead of the one that was asked for it.
    if (!landed) throw new Fault('unavailable', `The transaction ${signature} is not final yet`)
    return landed
  }

  return async ({ reference, account, since }) => {
    let reads = 0
    let pages = 0
    for await (const named of historyPages(chain, reference, { commitment: 'confirmed', since })) {
      if (pages++ === namedPagesMax)
        throw new Fault('unavailable', `${reference} is named by too many transactions`)
      for (const { signature, failed } of named) {
        if (failed || foreign.has(`${account} ${signature}`)) continue
        if (reads++ === readMax)
          throw new Fault('unavailable', `${reference} is named by many transactions, which are still read`)
        const landed = await readOwn(signature, account)
        if (landed) return { signature, landed }
      }
    }
    return undefined
  }
}

function signersOf({ raw }: LandedTransaction): string[] {
  try {
    return decodeMessage(splitTransaction(Buffer.from(raw, 'base64')).message).signers
  } catch (error) {
    // A transaction in another form was not made by the gateway, so it counts as signed by nobody.
    if (error instanceof InvalidMessageError) return []
    throw error
  }
}

export type SentExecution = NamedExecution & { signature: string; account: string; at: Date }

const pagesMax = 20

/**
 * Returns the executions that a fee payer has paid for since a time (less the error of block times), from the final
 * part of its history.
 */
export async function sentExecutions(
  chain: SearchedChain,
  feePayer: string,
  { since, signal }: { since: Date; signal: AbortSignal },
): Promise<SentExecution[]> {
  const found: SentExecution[] = []
  const { finality } = chain.row
  let pages = 0
  for await (const page of historyPages(chain, feePayer, { commitment: finality, since })) {
    if (pages++ === pagesMax)
      throw new Error(
        `${feePayer} has sent more than ${pagesMax * pageMax} transactions since ${since.toISOString()}`,
      )
    for (const { signature, failed } of page) {
      signal.throwIfAborted()
      const landed = await chain.transaction(signature, finality)
      if (!landed) throw new Fault('unavailable', `The transaction ${signature} is not final yet`)
      const at = new Date((landed.blockSeconds ?? 0) * 1_000)
      if (landed.blockSeconds !== undefined && Number(at) <= Number(since) - blockTimeErrorMs) return found
      const account = signersOf(landed).find((signer) => signer !== feePayer)
      if (failed || account === undefined) continue
      for (const key of accountKeysOf(Buffer.from(landed.raw, 'base64'))) {
        const execution = executionOfReference(key)
        if (execution) found.push({ ...execution, signature, account, at })
      }
    }
  }
  return found
}
