import type { Account } from './account.ts'
import { accountView, readViewOptions, type ViewOptions } from './account-view.ts'
import type { Chain } from './chain.ts'
import { resolveKeys } from './effects.ts'
import { readTransaction } from './execution.ts'
import { airdrop } from './faucet.ts'
import type { SignatureRow } from './ledger.ts'
import type { Simulation } from './machine.ts'
import type { Message, WireTransaction } from './message.ts'
import { withContext } from './methods-cluster.ts'
import {
  addressAt,
  addressOf,
  bytesOf,
  type Config,
  commitmentOf,
  configAt,
  countOf,
  encodingOf,
  flagOf,
  listAt,
  type Params,
  recordOf,
  signatureAt,
  signatureOf,
  textAt,
  u64Of,
} from './params.ts'
import { systemProgram } from './programs.ts'
import { invalidParams } from './rpc-error.ts'
import { blockhashSlots, heightOf } from './slots.ts'
import { errorOf, statusOf, transactionEncodings, transactionView } from './transaction-view.ts'

const statusesMax = 256
const historyMax = 1_000
const wireEncodings = ['base58', 'base64'] as const

/** A node answers history only for `confirmed` and `finalized`. */
const historyCommitment = (config: Config): 'confirmed' | 'finalized' => {
  const commitment = commitmentOf(config)
  if (commitment === 'processed') throw invalidParams('Method does not support commitment below `confirmed`')
  return commitment
}

const confirmationOf = (chain: Chain, { slot }: SignatureRow) => {
  if (slot <= chain.slotAt('finalized')) return 'finalized'
  return slot <= chain.slotAt('confirmed') ? 'confirmed' : 'processed'
}

const statusView = (chain: Chain, row: SignatureRow) => {
  const err = errorOf(row.err)
  const confirmationStatus = confirmationOf(chain, row)
  const confirmations = confirmationStatus === 'finalized' ? null : chain.slotAt('processed') - row.slot
  return { confirmationStatus, confirmations, err, slot: row.slot, status: statusOf(err) }
}

/** Those whose state after the simulation is asked for: not more than the transaction names, whichever they are. */
const requestedAddresses = (
  { addresses }: Config,
  { accountKeys, addressTableLookups }: Message,
): string[] => {
  const lookedUp = addressTableLookups.flatMap((table) => [
    ...table.writableIndexes,
    ...table.readonlyIndexes,
  ])
  const max = accountKeys.length + lookedUp.length
  const listed = listAt([addresses], 0, Number.POSITIVE_INFINITY)
  if (listed.length > max) throw invalidParams(`Too many accounts provided; max ${max}`)
  return listed.map(addressOf)
}

const simulatedViewOptions = (requested: Config): ViewOptions => {
  const viewOptions = readViewOptions(requested, 'base64')
  if (viewOptions.encoding === 'binary' || viewOptions.encoding === 'base58')
    throw invalidParams('base58 encoding not supported')
  return viewOptions
}

/** What the runtime loads for an account of a transaction that does not exist. */
const emptyAccount: Account = {
  lamports: 0n,
  data: new Uint8Array(),
  owner: systemProgram,
  executable: false,
}

const simulatedAccounts = (
  chain: Chain,
  { message }: WireTransaction,
  requested: Config,
): ((simulation: Simulation) => unknown[]) => {
  const viewOptions = simulatedViewOptions(requested)
  const addresses = requestedAddresses(requested, message)
  return (simulation) => {
    if (simulation.err !== null) return addresses.map(() => null)
    const changed = simulation.accounts()
    const named = new Set(resolveKeys(message, chain.account)?.keys)
    const after = (address: string) => changed.get(address) ?? chain.account(address)
    return addresses.map((address) => {
      const account = after(address) ?? (named.has(address) ? emptyAccount : undefined)
      return account ? accountView(account, viewOptions, after) : null
    })
  }
}

const simulationView = (
  chain: Chain,
  simulation: Simulation,
  { accounts, config }: { accounts: unknown[] | null; config: Config },
) => {
  const replaced = flagOf(config, 'replaceRecentBlockhash')
  const slot = chain.slotAt('processed')
  return {
    accounts,
    err: simulation.err,
    innerInstructions: flagOf(config, 'innerInstructions') ? simulation.inner : null,
    loadedAccountsDataSize: 0,
    logs: simulation.logs,
    replacementBlockhash: replaced
      ? { blockhash: chain.time.hashOf(slot), lastValidBlockHeight: heightOf(slot) + blockhashSlots }
      : null,
    returnData: simulation.returnData,
    unitsConsumed: simulation.units,
  }
}

/** Bounds of a page; an unknown signature is rejected and not ignored. */
const sequenceOf = (chain: Chain, signature: unknown, missing: number): number => {
  if (signature === undefined || signature === null) return missing
  const row = chain.ledger.find(signatureOf(signature))
  if (row === undefined) throw invalidParams(`Invalid param: transaction ${String(signature)} not found`)
  return row.seq
}

export const transactionMethods = (chain: Chain) => ({
  requestAirdrop: (params: Params) => airdrop(chain, addressAt(params, 0), u64Of(params[1], 'lamports')),
  sendTransaction: (params: Params) => {
    const config = configAt(params, 1)
    const bytes = bytesOf(textAt(params, 0), encodingOf(config, wireEncodings, 'base58'))
    return chain.send(bytes, { skipPreflight: flagOf(config, 'skipPreflight') })
  },
  simulateTransaction: (params: Params) => {
    const config = configAt(params, 1)
    const sigVerify = flagOf(config, 'sigVerify')
    const anyBlockhash = flagOf(config, 'replaceRecentBlockhash')
    if (sigVerify && anyBlockhash)
      throw invalidParams('sigVerify may not be used with replaceRecentBlockhash')
    const transaction = readTransaction(
      bytesOf(textAt(params, 0), encodingOf(config, wireEncodings, 'base58')),
    )
    const accountsAfter =
      config.accounts === undefined || config.accounts === null
        ? () => null
        : simulatedAccounts(chain, transaction, recordOf(config.accounts))
    const simulation = chain.simulate(transaction, { sigVerify, anyBlockhash })
    return withContext(
      chain.slotAt('processed'),
      simulationView(chain, simulation, { accounts: accountsAfter(simulation), config }),
    )
  },
  /** Without searchTransactionHistory only recent signatures are known, as in a node's status cache. */
  getSignatureStatuses: (params: Params) => {
    const search = flagOf(configAt(params, 1), 'searchTransactionHistory')
    const newest = chain.slotAt('processed')
    const oldest = search ? chain.time.firstBlock() : newest - blockhashSlots
    const statuses = listAt(params, 0, statusesMax).map((item) => {
      const row = chain.ledger.find(signatureOf(item))
      const isSeen = row !== undefined && row.slot <= newest && row.slot >= oldest
      return isSeen ? statusView(chain, row) : null
    })
    return withContext(newest, statuses)
  },
  getTransaction: (params: Params) => {
    const config = typeof params[1] === 'string' ? { encoding: params[1] } : configAt(params, 1)
    const encoding = encodingOf(config, transactionEncodings, 'json')
    const row = chain.ledger.findBody(signatureAt(params, 0))
    if (row === undefined || row.slot > chain.slotAt(historyCommitment(config))) return null
    if (row.slot < chain.time.firstBlock()) return null
    const versionMax = config.maxSupportedTransactionVersion ?? undefined
    return transactionView(
      row,
      encoding,
      versionMax === undefined ? undefined : countOf(versionMax, 'maxSupportedTransactionVersion', 255),
    )
  },
  getSignaturesForAddress: (params: Params) => {
    const address = addressAt(params, 0)
    const config = configAt(params, 1)
    const limit = countOf(config.limit ?? historyMax, 'limit', historyMax)
    const slotMax = chain.slotAt(historyCommitment(config))
    const before = sequenceOf(chain, config.before, Number.MAX_SAFE_INTEGER)
    const after = sequenceOf(chain, config.until, 0)
    if (limit === 0) throw invalidParams(`Invalid limit; max ${historyMax}`)
    const slotMin = chain.time.firstBlock()
    const listed = chain.ledger.history(address, before, after, { slotMax, limit })
    return listed
      .filter(({ slot }) => slot >= slotMin)
      .map((row) => ({
        blockTime: row.time,
        confirmationStatus: confirmationOf(chain, row),
        err: errorOf(row.err),
        memo: row.memo,
        signature: row.signature,
        slot: row.slot,
      }))
  },
})
