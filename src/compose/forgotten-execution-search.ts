import {
  type BeginSearch,
  type FoundRow,
  openExecutionComparison,
} from '#durable/time/lost-execution-search.ts'
import type { EvmPort } from '#engines/evm-batch/evm-chain-parts.ts'
import {
  type EvmProgress,
  type FoundExecution,
  findExecutions,
} from '#engines/evm-batch/find-forgotten-executions.ts'
import { findSvmExecutions, type SvmProgress } from '#engines/svm-transaction/find-forgotten-executions.ts'
import type { SvmPort } from '#engines/svm-transaction/svm-port.ts'
import { type FoundAtVenue, findAtVenue } from '#engines/venue/orders/find-forgotten-executions.ts'
import type { createForgottenOrderSearch } from '#features/predmkt/find-forgotten-orders.ts'
import { triggerKind } from '#features/spot-venue/trigger-store.ts'
import { changesOf } from '#features/swap/settle/balance-changes.ts'
import { executedBatchIn, executionOf } from '#upstreams/evm/batch.ts'
import { wrapsOf } from '#upstreams/evm/swap-calls.ts'
import { findSent, nonceAt } from '#upstreams/evm/transactions-by-nonce.ts'
import { sentExecutions } from '#upstreams/solana/execution-reference.ts'
import { type Chains, usersOfAccounts } from './chains.ts'
import type { Core } from './core.ts'
import { shareTokenAt } from './earn.ts'
import { chainId as predictionChainId } from './predmkt.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

/** Builds the searches of the chains and the venue for executions that the database does not know. */

type ComparisonParts = {
  core: Core
  chains: Chains
  venue: Pick<Venue, 'client'> | undefined
  /** Searches the prediction market, whose money is on Polygon. */
  predictions: ReturnType<typeof createForgottenOrderSearch> | undefined
}

export function openForgottenExecutionSearch(parts: ComparisonParts): AsyncDisposable {
  const { db, clock, log, taskEngine } = parts.core
  const { holds, isOnDuty } = taskEngine
  return openExecutionComparison({ db, clock, log, holds, isOnDuty, searches: searchesOf(parts) })
}

function searchesOf({ core, chains, venue, predictions }: ComparisonParts): ReadonlyMap<string, BeginSearch> {
  const searches = new Map<string, BeginSearch>()
  for (const [id, port] of chains.ports) searches.set(id, searchEvm(core, port))
  for (const [id, port] of chains.svmPorts) searches.set(id, searchSolana(core, port))
  if (venue) searches.set(venueChainId, searchVenue(core, venue))
  const ofChain = searches.get(predictionChainId)
  if (ofChain && predictions)
    searches.set(predictionChainId, joinSearches(ofChain, searchPredictions(core, predictions)))
  return searches
}

/** A chain that holds the money of a venue is compared once both were searched. */
const joinSearches =
  (...all: readonly BeginSearch[]): BeginSearch =>
  (point, store) => {
    const searches = all.map((begin) => begin(point, store))
    return async (signal) => {
      const used = []
      for (const search of searches) used.push(await search(signal))
      return Object.assign({}, ...used)
    }
  }

const searchPredictions =
  ({ log }: Core, find: NonNullable<ComparisonParts['predictions']>): BeginSearch =>
  (point, store) => {
    const done = new Set<string>()
    const unlisted = new Map<string, string>()
    return async (signal) => {
      await find((found) => store(found.map((each) => ({ ...each, sequence: 0, balanceChanges: [] }))), {
        point,
        signal,
        done,
        unlisted,
      })
      if (unlisted.size === 0) return {}
      const accounts = Object.fromEntries(unlisted)
      log.error({ accounts }, 'the prediction market refuses to list the orders of accounts')
      return { unlisted_prediction_accounts: [...unlisted.keys()] }
    }
  }

const searchEvm =
  ({ db, config }: Core, port: EvmPort): BeginSearch =>
  (point, store) => {
    const progress: EvmProgress = new Map()
    const chain = port.chain.row.id
    const storeOfUsers = async (found: readonly FoundExecution[]) => store(await ofUsers(db, found))
    const deps = {
      db,
      findSent,
      nonceAt,
      batchIn: executedBatchIn,
      executionOf,
      changesOf: executedChanges,
      tokens: chain === config.EARN_CHAIN_ID ? [shareTokenAt(config.EARN_VAULT_ADDRESS)] : [],
      store: storeOfUsers,
    }
    return async (signal) => {
      const used = await findExecutions(deps, port, { point, signal, progress })
      const raised = Object.entries(used).map(([signer, { from, to }]) => [
        `${chain}:${signer}`,
        { chain, signer, from: String(from), to: String(to) },
      ])
      return Object.fromEntries(raised)
    }
  }

const executedChanges: Parameters<typeof findExecutions>[0]['changesOf'] = (
  chain,
  { receipt, account, calls },
) =>
  changesOf(chain.row, {
    account,
    calls,
    transfers: chain.transfers(receipt),
    wraps: chain.row.swaps ? wrapsOf(receipt.logs, chain.row.swaps) : [],
  })

const searchSolana =
  ({ db }: Core, port: SvmPort): BeginSearch =>
  (point, store) => {
    const progress: SvmProgress = { landed: new Map() }
    const storeOfUsers = async (found: readonly FoundExecution[]) => store(await ofUsers(db, found))
    const deps = { sent: sentExecutions, store: storeOfUsers }
    return async (signal) => {
      if (point !== null) await findSvmExecutions(deps, port, { since: point, signal, progress })
      return {}
    }
  }

const searchVenue =
  ({ db, log }: Core, { client }: Pick<Venue, 'client'>): BeginSearch =>
  (point, store) => {
    const done = new Set<string>()
    const unlisted = new Set<string>()
    const ofVenue = { chainId: venueChainId, sequence: 0, balanceChanges: [] }
    const deps = {
      db,
      venue: client.withUrgency('work'),
      triggerKind,
      store: (found: readonly FoundAtVenue[]) => store(found.map((each) => ({ ...ofVenue, ...each }))),
    }
    return async (signal) => {
      await findAtVenue(deps, { point, signal, done, unlisted })
      if (unlisted.size === 0) return {}
      const accounts = [...unlisted]
      log.error(
        { accounts },
        'the venue no longer lists all fills of accounts since the moment of the database',
      )
      return { unlisted_accounts: accounts }
    }
  }

/**
 * Adds the user of each account. An account that the database does not know, because it was made after the moment to
 * which the database went back, is omitted.
 */
async function ofUsers(db: Core['db'], executions: readonly FoundExecution[]): Promise<FoundRow[]> {
  const users = await usersOfAccounts(
    db,
    executions.map(({ account }) => account),
  )
  return executions.flatMap(({ account, ...each }) => {
    const userId = users.get(account.toLowerCase())
    return userId === undefined ? [] : [{ ...each, userId, venue: null }]
  })
}
