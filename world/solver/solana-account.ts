import type { Rpc } from '#world/evm/rpc.ts'
import { toBase58 } from '#world/solana/base58.ts'
import { associatedTokenProgram, memoProgram } from '#world/solana/programs.ts'
import { type PlannedInstruction, signedTransaction } from '#world/solana/transaction-builder.ts'
import type { ChainAccount, Payment, PayoutState } from './chain-account.ts'
import {
  type Currency,
  requireCurrency,
  type SolverChain,
  solanaChainId,
  solanaKey,
  systemProgram,
  tokenAccountOf,
  tokenProgramOf,
} from './chains.ts'
import { tableInstructions } from './lookup-table.ts'
import { unitsOfUsd } from './money.ts'
import type { Prices } from './prices.ts'
import type { Attempt } from './request.ts'
import { type Cursors, scanDeposits } from './solana-deposits.ts'
import type { Store } from './store.ts'
import { u64 } from './u64.ts'

const inventoryUsd = 2_000_000n * 10n ** 18n
const timeoutMs = 10_000
const confirmationPolls = 200
const confirmationPollMs = 50
const cursorName = 'scanned:solana'
/** Another name than that of the table of earlier versions, which lacks addresses. */
const tableName = 'deposit-lookup-table'

type Commitment = { commitment: 'confirmed' | 'finalized' }
const confirmed: Commitment = { commitment: 'confirmed' }
const finalized: Commitment = { commitment: 'finalized' }
type SignatureStatus = { slot: number; err: unknown; confirmationStatus: string } | null

const payer = { address: solanaKey.address, signer: true, writable: true }

/** Pays native coins or tokens; the account of a new owner is opened at the solver's cost. */
const paymentInstructions = ({ currency, units, to, id, type }: Payment): PlannedInstruction[] => {
  // Two equal payments within one blockhash would be one transaction; the memo makes them different.
  const memo = { program: memoProgram, accounts: [], data: Buffer.from(`${type} ${id}`) }
  const amount = u64(BigInt(units))
  if (currency === systemProgram) {
    const data = Buffer.concat([Uint8Array.of(2, 0, 0, 0), amount])
    return [{ program: systemProgram, accounts: [payer, { address: to, writable: true }], data }, memo]
  }
  const program = tokenProgramOf(currency)
  const receiver = { address: tokenAccountOf(to, currency), writable: true }
  const mint = { address: currency }
  const { decimals } = requireCurrency(solanaChainId, currency)
  return [
    {
      program: associatedTokenProgram,
      accounts: [payer, receiver, { address: to }, mint, { address: systemProgram }, { address: program }],
      data: Uint8Array.of(1),
    },
    {
      program,
      accounts: [
        { address: tokenAccountOf(solanaKey.address, currency), writable: true },
        mint,
        receiver,
        { address: solanaKey.address, signer: true },
      ],
      data: Buffer.concat([Uint8Array.of(12), amount, Uint8Array.of(decimals)]),
    },
    memo,
  ]
}

export type SolanaAccountDeps = {
  chain: SolverChain
  rpc: Rpc
  /** Serves the world's own routes beside the JSON-RPC. */
  port: number
  store: Store
  prices: Prices
  nowMs: () => number
}

const statusOf = async (rpc: Rpc, signature: string): Promise<SignatureStatus> => {
  const params = [[signature], { searchTransactionHistory: true }]
  const { value } = (await rpc.call('getSignatureStatuses', params)) as { value: [SignatureStatus] }
  return value[0]
}

const waitUntilConfirmed = async (rpc: Rpc, signature: string): Promise<void> => {
  for (let polls = 0; polls < confirmationPolls; polls += 1) {
    const status = await statusOf(rpc, signature)
    if (status && status.confirmationStatus !== 'processed') return
    await new Promise((resolve) => setTimeout(resolve, confirmationPollMs))
  }
  throw new Error(`Solana did not confirm ${signature}.`)
}

const prepareOnce = async ({ chain, port, prices, rpc }: SolanaAccountDeps): Promise<void> => {
  let signature = ''
  for (const currency of [chain.native, ...chain.tokens]) {
    const units = unitsOfUsd(inventoryUsd, currency, await prices.requirePrice(currency))
    const token = currency.metadata.isNative ? { symbol: 'native' } : { mint: currency.address }
    const id = `solver inventory ${currency.symbol}`
    const body = { address: solanaKey.address, amount_units: String(units), id, ...token }
    const reply = await fetch(`http://127.0.0.1:${port}/mint`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
    if (!reply.ok) throw new Error(`Solana refused the inventory: ${await reply.text()}`)
    signature = ((await reply.json()) as { signature: string }).signature
  }
  // Balances are read at `confirmed`.
  await waitUntilConfirmed(rpc, signature)
}

/** A crash before the table is stored leaves one more table, which nobody uses. */
const createLookupTable = async ({ rpc, store }: SolanaAccountDeps): Promise<void> => {
  if (store.setting(tableName) !== undefined) return
  const slot = (await rpc.call('getSlot', [finalized])) as number
  const { table, instructions } = tableInstructions(slot)
  const { value } = (await rpc.call('getLatestBlockhash', [confirmed])) as { value: { blockhash: string } }
  const raw = Buffer.from(signedTransaction(solanaKey, instructions, value.blockhash)).toString('base64')
  const signature = await rpc.call('sendTransaction', [raw, { encoding: 'base64' }])
  await waitUntilConfirmed(rpc, String(signature))
  store.saveSetting(tableName, table)
}

const hasAccount = (error: Error): boolean => !/could not find account/i.test(error.message)

export const createSolanaAccount = (deps: SolanaAccountDeps): ChainAccount => {
  const { rpc, store, nowMs } = deps
  let preparing: Promise<void> | undefined

  const compile = async (payment: Payment): Promise<Attempt> => {
    const { value } = (await rpc.call('getLatestBlockhash', [confirmed])) as {
      value: { blockhash: string; lastValidBlockHeight: number }
    }
    const wire = signedTransaction(solanaKey, paymentInstructions(payment), value.blockhash)
    const raw = Buffer.from(wire).toString('base64')
    return { raw, hash: toBase58(wire.subarray(1, 65)), lastValidBlockHeight: value.lastValidBlockHeight }
  }

  const stateOf = async ({ hash, lastValidBlockHeight = 0 }: Attempt): Promise<PayoutState> => {
    // Read before the status: a transaction that is absent at a later height is absent for ever.
    const height = (await rpc.call('getBlockHeight', [finalized])) as number
    const status = await statusOf(rpc, hash)
    if (status === null) return { state: height > lastValidBlockHeight ? 'expired' : 'pending' }
    if (status.confirmationStatus === 'processed') return { state: 'pending' }
    return status.err === null ? { state: 'mined', block: status.slot } : { state: 'reverted' }
  }

  return {
    prepare: () => {
      preparing ??= prepareOnce(deps)
        .then(() => createLookupTable(deps))
        .catch((error: Error) => {
          preparing = undefined
          throw error
        })
      return preparing
    },
    lookupTables: () => [store.setting(tableName) ?? []].flat(),
    balance: async ({ address, metadata }: Currency) => {
      if (metadata.isNative) {
        const { value } = (await rpc.call('getBalance', [solanaKey.address, confirmed])) as { value: number }
        return BigInt(value)
      }
      try {
        const params = [tokenAccountOf(solanaKey.address, address), confirmed]
        const reply = (await rpc.call('getTokenAccountBalance', params)) as { value: { amount: string } }
        return BigInt(reply.value.amount)
      } catch (error) {
        if (hasAccount(error as Error)) throw error
        return 0n
      }
    },
    scan: async () => {
      const before = JSON.parse(store.setting(cursorName) ?? '{}') as Cursors
      const { deposits, cursors } = await scanDeposits(rpc, before, nowMs())
      return { deposits, head: 0, readFrom: Number.MAX_SAFE_INTEGER, cursor: JSON.stringify(cursors) }
    },
    confirmScan: ({ cursor }) => {
      if (cursor !== store.setting(cursorName)) store.saveSetting(cursorName, cursor)
    },
    simulate: async (payment) => {
      const { raw } = await compile(payment)
      const params = [raw, { encoding: 'base64', ...confirmed }]
      const { value } = (await rpc.call('simulateTransaction', params)) as { value: { err: unknown } }
      return value.err === null
    },
    sign: compile,
    send: async ({ raw }) => {
      const params = [raw, { encoding: 'base64', skipPreflight: true }]
      await rpc.call('sendTransaction', params).catch((error: Error) => {
        // A late send is rejected; the look-up then finds it expired or executed.
        if (!/already been processed|already processed|Blockhash not found/i.test(error.message)) throw error
      })
    },
    stateOf,
  }
}
