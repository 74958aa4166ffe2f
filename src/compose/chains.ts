import { sponsorsTopic } from '#durable/events/notifier.ts'
import { storeHold } from '#durable/time/money-hold.ts'
import { createBroadcasts } from '#engines/evm-batch/broadcasts.ts'
import type { EvmPort } from '#engines/evm-batch/evm-chain-parts.ts'
import { createNonceRepair } from '#engines/evm-batch/nonce-repair.ts'
import { createPausedSponsors } from '#engines/evm-batch/paused-sponsors.ts'
import type { SvmPort } from '#engines/svm-transaction/svm-port.ts'
import { chainList, solanaId } from '#features/chains/chain-list.ts'
import { createSponsorBalances } from '#features/chains/sponsor-balances.ts'
import type { EvmChainRow, SolanaChainRow } from '#kernel/money/chains.ts'
import { lamportDecimals } from '#kernel/money/money.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { type Queryable, query } from '#store/query.ts'
import { executedBatchIn } from '#upstreams/evm/batch.ts'
import { createEvm } from '#upstreams/evm/evm.ts'
import { nodeMismatch } from '#upstreams/evm/node-check.ts'
import { abandonedAttempts, planNonceRepair } from '#upstreams/evm/nonce-repair-plan.ts'
import { createReceiptWatcher } from '#upstreams/evm/receipt-watcher.ts'
import { createSponsor } from '#upstreams/evm/sponsor.ts'
import { findSent, nonceAt } from '#upstreams/evm/transactions-by-nonce.ts'
import { referenceOf, referenceSearch } from '#upstreams/solana/execution-reference.ts'
import { walletChanges } from '#upstreams/solana/incoming-transfers.ts'
import { readLanding } from '#upstreams/solana/landed-balance-changes.ts'
import { createSignatureWatcher } from '#upstreams/solana/signature-watcher.ts'
import { createSolana, type Solana } from '#upstreams/solana/solana.ts'
import { createSvmSponsor } from '#upstreams/solana/sponsor.ts'
import { draftTransaction } from '#upstreams/solana/transaction-draft.ts'
import type { Core } from './core.ts'
import { venueChainId } from './settings.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

type ChainDeps = { core: Core; urls: UpstreamUrls; net: Net }
export type ChainOverrides = {
  /** Changes the description of a chain, for a test. */
  adjustChain?: (row: EvmChainRow) => EvmChainRow
  adjustSolana?: (row: SolanaChainRow) => SolanaChainRow
}

const sponsorBalanceMinWei = 10_000_000_000_000_000n
/** With a balance between `sponsorExitMinWei` and `sponsorBalanceMinWei`, a sponsor pays only for full withdrawals. */
const sponsorExitMinWei = 1_000_000_000_000_000n
const sponsorBalanceMinLamports = 100_000_000n
const sponsorExitMinLamports = 10_000_000n

export function openChains({ core, urls, net }: ChainDeps, overrides: ChainOverrides = {}) {
  const { config, clock, db, taskEngine, log } = core
  const { adjustChain = (row) => row, adjustSolana = (row) => row } = overrides
  const table = chainList({
    urls: { ...urls.evm, [solanaId]: urls.solana },
    finality: config.FINALITY,
    isSolanaSponsored: config.SOLANA_SPONSOR_KEYS.length > 0,
    providers: { relay: urls.relay !== undefined, lifi: urls.lifi !== undefined },
  }).map((row) => (row.family === 'evm' ? adjustChain(row) : adjustSolana(row)))
  const paused = createPausedSponsors({ db })
  taskEngine.notifier.onAny((topic) => {
    if (topic === sponsorsTopic) paused.invalidate()
  })
  const secrets = secretsOf(config.SPONSOR_KEYS)
  const ports = new Map<string, EvmPort>()
  const svmPorts = new Map<string, SvmPort>()
  const readers = table.map((row) => {
    if (row.family === 'solana') {
      const chain = createSolana({ row, net })
      if (config.SOLANA_SPONSOR_KEYS.length > 0)
        svmPorts.set(
          row.id,
          openSvmPort(core, chain, (signer) => paused.has(row.id, signer)),
        )
      return { family: 'solana' as const, chain }
    }
    const chain = createEvm({ row, net })
    const payer = createSponsor({
      chain,
      secrets,
      clock,
      balanceMinWei: sponsorBalanceMinWei,
      exitMinWei: sponsorExitMinWei,
      isPaused: (signer) => paused.has(row.id, signer),
    })
    const watcher = createReceiptWatcher({ chain, wake: taskEngine.wakeTasks, log })
    ports.set(row.id, { chain, sponsor: payer, watcher, broadcasts: createBroadcasts(chain) })
    return { family: 'evm' as const, chain }
  })
  /** The health probe asks each chain for its head, which is one cheap call. */
  const heads = readers.map((reader) => ({
    id: reader.chain.row.id,
    head: (signal: AbortSignal): Promise<unknown> =>
      reader.family === 'evm' ? reader.chain.head(signal) : reader.chain.slot(signal),
  }))
  const nonceRepair = createNonceRepair({
    db,
    transact: taskEngine.transact,
    ports,
    plan: planNonceRepair,
    abandoned: abandonedAttempts,
    holds: taskEngine.holds,
    storeHold,
    findSent,
    nonceAt,
    isBatch: (input) => executedBatchIn(input) !== undefined,
    usersOf: (accounts) => usersOfAccounts(db, accounts),
    clock,
    log,
  })
  return {
    table,
    /** Returns the name of a chain or of the venue for people. */
    nameOf: (id: string): string =>
      id === venueChainId ? 'Hyperliquid' : (table.find((row) => row.id === id)?.displayName ?? id),
    ports,
    svmPorts,
    readers,
    heads,
    nonceRepair,
    metrics: { sponsors: createSponsorBalances({ ports, svmPorts, clock, log }) },
    [Symbol.dispose]() {
      for (const { watcher } of [...ports.values(), ...svmPorts.values()]) watcher.close()
    },
  }
}

/**
 * Returns users by account in lower case. The query reads all wallets, because addresses are stored with a checksum and
 * no index has them in lower case.
 */
export async function usersOfAccounts(
  db: Queryable,
  accounts: readonly string[],
): Promise<Map<string, string>> {
  const rows = await query<{ account: string; user_id: string }>(
    db,
    'select lower(address) as account, user_id from wallet where lower(address) = any($1::text[])',
    [accounts.map((account) => account.toLowerCase())],
  )
  return new Map(rows.map(({ account, user_id }) => [account, user_id]))
}

const secretsOf = (keys: readonly string[]) => keys.map((key) => Buffer.from(key.slice(2), 'hex'))

function openSvmPort(
  { config, clock, taskEngine, log }: Core,
  chain: Solana,
  isPaused: (signer: string) => Promise<boolean>,
): SvmPort {
  const { address: native } = chain.row.native
  return {
    chain,
    sponsor: createSvmSponsor({
      chain,
      secrets: secretsOf(config.SOLANA_SPONSOR_KEYS),
      clock,
      balanceMinLamports: sponsorBalanceMinLamports,
      exitMinLamports: sponsorExitMinLamports,
      isPaused,
    }),
    watcher: createSignatureWatcher({ chain, wake: taskEngine.wakeTasks, log }),
    draft: (order) => draftTransaction(chain, order),
    referenceOf,
    findReferenced: referenceSearch(chain),
    changesSince: (wallet) => walletChanges(chain, wallet),
    readLanding: (landed, of) => readLanding(landed, { ...of, native, nativeDecimals: lamportDecimals }),
  }
}
export type Chains = ReturnType<typeof openChains>

/** Returns which nodes serve another network than expected; the health probe reports nodes that do not answer. */
export async function findNodeProblems({ ports }: Chains, environment: string): Promise<string[]> {
  const asked = [...ports.values()].map(async ({ chain: { row, identify } }) => {
    const problem = nodeMismatch(await identify(), { chainId: row.id, local: environment === 'local' })
    return problem === undefined ? [] : [`${row.displayName}: ${problem}`]
  })
  const found = await Promise.allSettled(asked)
  return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
}
