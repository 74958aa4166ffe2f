import { repeat } from '#kernel/async/repeat.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import { everything, type MoneyHold, type MoneyHolds, readGeneration, storeHold } from './money-hold.ts'

/**
 * While money is on hold, one instance compares the database with the chains and the venue: it searches them for
 * executions that the database does not know, and stores these. Each chain is searched by itself: if one does not
 * answer, only this chain stays on hold.
 */

const everyMs = 1_000
/**
 * The time limit of one run of a search. A slower search continues in a later run, and until it is done only its chain
 * stays on hold.
 */
const searchMsMax = 600_000

/** An execution that a search has found. `venue` describes what was executed at the venue. */
export type FoundRow = {
  executionId: string
  userId: string
  txHash: string | null
  executedAt: Date
  chainId: string
  sequence: number
  balanceChanges: object[]
  venue: object | null
}
/**
 * Searches one chain. When a search is called again after it was aborted, it continues with what it has found. It
 * returns, by signer, the nonces to which `time resume` raises the nonce counters.
 */
type Search = (signal: AbortSignal) => Promise<JsonObject>
type StoreFound = (executions: readonly FoundRow[]) => Promise<void>
export type BeginSearch = (point: Date | null, store: StoreFound) => Search

type ComparisonDeps = {
  db: Queryable
  clock: Clock
  log: Log
  holds: Pick<MoneyHolds, 'list'>
  isOnDuty: () => boolean
  /** Begins the search of each chain, by chain id; the venue counts as a chain. */
  searches: ReadonlyMap<string, BeginSearch>
}
/**
 * A search that has begun. `isAlone` is true if only single chains are on hold: tasks still run then, so the search
 * omits the transactions that the tasks of this database have sent.
 */
type Begun = SearchOf & { search: Search; count: number }
type Findings = { used: JsonObject; count: number }
/** `begun` has the searches that are not done, by chain id. */
type State = { deps: ComparisonDeps; begun: Map<string, Begun>; closing: AbortSignal }

export function openExecutionComparison(deps: ComparisonDeps): AsyncDisposable {
  const { holds: moneyHolds, isOnDuty, log } = deps
  const closing = new AbortController()
  const state: State = { deps, begun: new Map(), closing: closing.signal }
  const compareIfWanted = async () => {
    if (!isOnDuty()) return
    const holds = moneyHolds.list()
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
  const comparing = repeat(compareIfWanted, {
    everyMs,
    onError: (error) => log.warn({ error }, 'the chains were not compared with the database: will retry'),
  })
  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      await comparing[Symbol.asyncDispose]()
    },
  }
}

/** Returns what the search of a chain found; undefined where the chain is silent or its search is not done yet. */
async function findingsOf(
  { deps, begun, closing }: State,
  id: string,
  { point, isAlone }: SearchOf,
): Promise<Findings | undefined> {
  const begin = deps.searches.get(id)
  if (!begin) return undefined
  let search = begun.get(id)
  if (search?.point?.getTime() !== point?.getTime()) search = undefined
  search ??= beginSearch(deps, begin, { point, isAlone })
  search.isAlone = isAlone
  begun.set(id, search)
  try {
    const used = await search.search(AbortSignal.any([closing, AbortSignal.timeout(searchMsMax)]))
    begun.delete(id)
    return { used, count: search.count }
  } catch (error) {
    deps.log.warn({ error, chain: id }, 'a chain was not compared with the database: will go on')
    return undefined
  }
}

type SearchOf = { point: Date | null; isAlone: boolean }

function beginSearch({ db }: ComparisonDeps, begin: BeginSearch, { point, isAlone }: SearchOf): Begun {
  const begun: Begun = {
    point,
    isAlone,
    count: 0,
    search: begin(point, async (found) => {
      const isEarlier = ({ executedAt }: FoundRow) => point !== null && executedAt <= point
      const earlier = found.filter((each) => begun.isAlone || isEarlier(each))
      const later = found.filter((each) => !begun.isAlone && !isEarlier(each))
      const executions = [...(await withoutOwn(db, earlier)), ...later]
      await storeExecutions(db, executions)
      begun.count += executions.length
    }),
  }
  return begun
}

async function compareAll(state: State, { point = null }: MoneyHold): Promise<void> {
  const { deps, closing } = state
  const { db, clock, log, searches } = deps
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
    await endUncompared(db, id)
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
  const { db, clock } = state.deps
  const findings = await findingsOf(state, scope, { point, isAlone: all === undefined })
  if (!findings) return
  if (all || findings.count === 0) {
    await query(db, 'update money_hold set detail = detail || $2::jsonb where scope = $1', [
      everything,
      jsonText(findings.used),
    ])
    await endUncompared(db, scope)
  }
  await query(
    db,
    `update money_hold set compared_at = $2, detail = detail || $3::jsonb,
       reason = case reason when 'not_compared' then 'foreign_batches' else reason end where scope = $1`,
    [scope, clock.now(), jsonText(findings.used)],
  )
}

/** Leaves out executions whose transaction the database has, since their own tasks look that transaction up. */
async function withoutOwn(db: Queryable, executions: readonly FoundRow[]): Promise<FoundRow[]> {
  const hashes = executions.flatMap(({ txHash }) => txHash ?? [])
  const rows = await query<{ external_id: string }>(
    db,
    'select external_id from tx_attempt where external_id = any($1)',
    [hashes],
  )
  const own = new Set(rows.map(({ external_id: id }) => id))
  return executions.filter(({ txHash }) => txHash === null || !own.has(txHash))
}

const endUncompared = (db: Queryable, scope: string) =>
  query(db, `delete from money_hold where scope = $1 and reason = 'not_compared'`, [scope])

async function storeExecutions(db: Queryable, executions: readonly FoundRow[]): Promise<void> {
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
