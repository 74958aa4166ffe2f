import { everything, type MoneyHold, readGeneration, storeHold } from '#durable/time/money-hold.ts'
import type { EvmPort } from '#engines/evm-batch/evm-port.ts'
import {
  type EvmProgress,
  type FoundExecution,
  findExecutions,
} from '#engines/evm-batch/find-forgotten-executions.ts'
import { findSvmExecutions, type SvmProgress } from '#engines/svm-transaction/find-forgotten-executions.ts'
import type { SvmPort } from '#engines/svm-transaction/svm-port.ts'
import { type FoundAtVenue, findAtVenue } from '#engines/venue/orders/find-forgotten-executions.ts'
import { triggerKind } from '#features/spot-venue/trigger-store.ts'
import { changesOf } from '#features/swap/settle/balance-changes.ts'
import { repeat } from '#kernel/async/repeat.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { jsonText, query } from '#store/query.ts'
import { executedBatchIn, executionOf } from '#upstreams/evm/batch.ts'
import { wrapsOf } from '#upstreams/evm/swap-calls.ts'
import { findSent, nonceAt } from '#upstreams/evm/transactions-by-nonce.ts'
import { sentExecutions } from '#upstreams/solana/execution-reference.ts'
import { type Chains, usersOfAccounts } from './chains.ts'
import type { Core } from './core.ts'
import { shareTokenAt } from './earn.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

/**
 * While money is on hold, one instance searches the chains and the venue for executions that the database does not
 * know, and stores them. Each chain is searched by itself: if one does not answer, only this chain stays on hold.
 */

const everyMs = 1_000
/**
 * The time limit of one run of a search. A slower search continues in a later run, and until it is done only its chain
 * stays on hold.
 */
const searchMsMax = 600_000

type ComparisonDeps = { core: Core; chains: Chains; venue: Pick<Venue, 'client'> | undefined }
type FoundRow = Omit<FoundAtVenue, 'venue'> & {
  chainId: string
  sequence: number
  balanceChanges: object[]
  venue: FoundAtVenue['venue'] | null
}
/**
 * Searches one chain. When a search is called again after it was aborted, it continues with what it has found. It
 * returns, by signer, the nonces to which `time resume` raises the nonce counters.
 */
type Search = (signal: AbortSignal) => Promise<JsonObject>
type Store = (executions: readonly FoundRow[]) => Promise<void>
type BeginSearch = (point: Date | null, store: Store) => Search
/**
 * A search that has begun. `isAlone` is true if only single chains are on hold: tasks still run then, so the search
 * omits the transactions that the tasks of this database have sent.
 */
type Begun = SearchOf & { search: Search; count: number }
type Findings = { used: JsonObject; count: number }
/**
 * `searches` begins the search of each chain, and `begun` has the searches that are not done, both by chain id; the
 * venue counts as a chain.
 */
type State = {
  core: Core
  searches: ReadonlyMap<string, BeginSearch>
  begun: Map<string, Begun>
  closing: AbortSignal
}

export function openTimeComparison({ core, chains, venue }: ComparisonDeps) {
  const closing = new AbortController()
  const state: State = {
    core,
    searches: searchesOf({ core, chains, venue }),
    begun: new Map(),
    closing: closing.signal,
  }
  const compareIfWanted = async () => {
    if (!core.taskEngine.isOnDuty()) return
    const holds = core.taskEngine.holds.list()
    // A hold whose `comparedAt` is undefined exists in this instance alone. It ends when this instance has compared the
    // nonces, so nothing is searched for it here.
    const uncompared = holds.filter(({ comparedAt }) => comparedAt === null)
    const all = holds.find(({ scope }) => scope === everything)
    // The search of a chain that is no longer on hold is dropped, because a later hold needs a search for later
    // transactions.
    for (const id of state.begun.keys())
      if (!all && !holds.some(({ scope }) => scope === id)) state.begun.delete(id)
    if (all && uncompared.includes(all)) await compareAll(state, all)
    else await Promise.all(uncompared.map((hold) => compareOne(state, hold, all)))
  }
  return {
    start(): AsyncDisposable {
      const repeated = repeat(compareIfWanted, {
        everyMs,
        onError: (error) =>
          core.log.warn({ error }, 'the chains were not compared with the database: will retry'),
      })
      return {
        async [Symbol.asyncDispose]() {
          closing.abort()
          await repeated[Symbol.asyncDispose]()
        },
      }
    },
  }
}

function searchesOf({ core, chains, venue }: ComparisonDeps): State['searches'] {
  const searches = new Map<string, BeginSearch>()
  for (const [id, port] of chains.ports) searches.set(id, searchEvm(core, port))
  for (const [id, port] of chains.svmPorts) searches.set(id, searchSolana(core, port))
  if (venue) searches.set(venueChainId, searchVenue(core, venue))
  return searches
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

/** Returns what the search of a chain found; undefined where the chain is silent or its search is not done yet. */
async function findingsOf(
  { core, searches, begun, closing }: State,
  id: string,
  { point, isAlone }: SearchOf,
): Promise<Findings | undefined> {
  const begin = searches.get(id)
  if (!begin) return undefined
  let search = begun.get(id)
  if (search?.point?.getTime() !== point?.getTime()) search = undefined
  search ??= beginSearch(core, begin, { point, isAlone })
  search.isAlone = isAlone
  begun.set(id, search)
  try {
    const used = await search.search(AbortSignal.any([closing, AbortSignal.timeout(searchMsMax)]))
    begun.delete(id)
    return { used, count: search.count }
  } catch (error) {
    core.log.warn({ error, chain: id }, 'a chain was not compared with the database: will go on')
    return undefined
  }
}

type SearchOf = { point: Date | null; isAlone: boolean }

function beginSearch(core: Core, begin: BeginSearch, { point, isAlone }: SearchOf): Begun {
  const begun: Begun = {
    point,
    isAlone,
    count: 0,
    search: begin(point, async (found) => {
      const isEarlier = ({ executedAt }: FoundRow) => point !== null && executedAt <= point
      const earlier = found.filter((each) => begun.isAlone || isEarlier(each))
      const later = found.filter((each) => !begun.isAlone && !isEarlier(each))
      const executions = [...(await withoutOwn(core.db, earlier)), ...later]
      await storeExecutions(core, executions)
      begun.count += executions.length
    }),
  }
  return begun
}

async function compareAll(state: State, { point = null }: MoneyHold): Promise<void> {
  const { core, searches, closing } = state
  const { db, clock, log } = core
  const generation = await readGeneration(db)
  const ids = [...searches.keys()]
  const found = await Promise.all(ids.map((id) => findingsOf(state, id, { point, isAlone: false })))
  if (closing.aborted) return
  const used: JsonObject = {}
  for (const [at, id] of ids.entries()) {
    const findings = found[at]
    if (!findings) {
      const hold = { scope: id, reason: 'not_compared' as const, since: clock.now(), detail: {}, point }
      await storeHold(db, hold, generation)
      continue
    }
    await endUncompared(core, id)
    Object.assign(used, findings.used)
  }
  await query(
    db,
    `update money_hold set compared_at = $2, detail = detail || $3::jsonb where scope = $1 and compared_at is null`,
    [everything, clock.now(), jsonText(used)],
  )
  log.warn(
    { executions: found.reduce((sum, each) => sum + (each?.count ?? 0), 0) },
    'the chains were compared with the database',
  )
}

/**
 * Compares one chain that is on hold. If everything is on hold, its findings are added to that hold; if not, an
 * operator adopts the findings of this chain by themselves.
 */
async function compareOne(
  state: State,
  { scope, point = null }: MoneyHold,
  all: MoneyHold | undefined,
): Promise<void> {
  const { db, clock } = state.core
  const findings = await findingsOf(state, scope, { point, isAlone: all === undefined })
  if (!findings) return
  if (all || findings.count === 0) {
    await query(db, 'update money_hold set detail = detail || $2::jsonb where scope = $1', [
      everything,
      jsonText(findings.used),
    ])
    await endUncompared(state.core, scope)
  }
  await query(
    db,
    `update money_hold set compared_at = $2, detail = detail || $3::jsonb,
       reason = case reason when 'not_compared' then 'foreign_batches' else reason end where scope = $1`,
    [scope, clock.now(), jsonText(findings.used)],
  )
}

/** Leaves out executions whose transaction the database has, since their own tasks look that transaction up. */
async function withoutOwn(db: Core['db'], executions: readonly FoundRow[]): Promise<FoundRow[]> {
  const hashes = executions.flatMap(({ txHash }) => txHash ?? [])
  const rows = await query<{ external_id: string }>(
    db,
    'select external_id from tx_attempt where external_id = any($1)',
    [hashes],
  )
  const own = new Set(rows.map(({ external_id: id }) => id))
  return executions.filter(({ txHash }) => txHash === null || !own.has(txHash))
}

const endUncompared = ({ db }: Core, scope: string) =>
  query(db, `delete from money_hold where scope = $1 and reason = 'not_compared'`, [scope])

async function storeExecutions({ db }: Core, executions: readonly FoundRow[]): Promise<void> {
  for (const each of executions)
    await query(
      db,
      `insert into found_execution
           (chain, execution_id, sequence, user_id, tx_hash, balance_changes, executed_at, venue)
         values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8::jsonb) on conflict do nothing`,
      [
        each.chainId,
        each.executionId,
        each.sequence,
        each.userId,
        each.txHash,
        jsonText(each.balanceChanges),
        each.executedAt,
        each.venue && jsonText(each.venue),
      ],
    )
}
