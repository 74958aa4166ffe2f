import { everything, type MoneyHold, readGeneration, storeHold } from '#durable/money-hold.ts'
import type { EvmPort } from '#engines/evm-batch/evm-port.ts'
import { type FoundExecution, findExecutions, type SearchRange } from '#engines/evm-batch/found-executions.ts'
import type { SvmPort } from '#engines/svm-transaction/svm-port.ts'
import { type FoundAtVenue, findAtVenue } from '#engines/venue/orders/found-executions.ts'
import { triggerKind } from '#features/spot-venue/triggers.ts'
import type { JsonObject } from '#kernel/json.ts'
import { repeat } from '#kernel/repeat.ts'
import { jsonText, query } from '#store/query.ts'
import { executedBatchIn, executionOf } from '#upstreams/evm/batch.ts'
import { findSent, nonceAt } from '#upstreams/evm/sent-transactions.ts'
import { sentExecutions } from '#upstreams/solana/reference.ts'
import { type Chains, usersOfAccounts } from './chains.ts'
import type { Core } from './core.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

/**
 * While money is on hold one instance writes down what the chains and the venue did and the database does not know. Each of
 * them is searched by itself: one that does not answer stays on hold alone.
 */

const everyMs = 1_000
/** A search that takes longer begins again. */
const searchMsMax = 600_000

type ComparisonDeps = { core: Core; chains: Chains; venue: Pick<Venue, 'client'> | undefined }
/** `used`: by signer, what `time resume` raises the counters to. */
type Findings = { executions: FoundRow[]; used: JsonObject }
type FoundRow = Omit<FoundAtVenue, 'venue'> & {
  chainId: string
  sequence: number
  balanceChanges: object[]
  venue: FoundAtVenue['venue'] | null
}
/** By chain, and the venue as one of them. */
type Searches = ReadonlyMap<string, (range: SearchRange) => Promise<Findings>>
type State = { core: Core; searches: Searches; closing: AbortSignal }

export function openTimeComparison({ core, chains, venue }: ComparisonDeps) {
  const closing = new AbortController()
  const state: State = { core, searches: searchesOf({ core, chains, venue }), closing: closing.signal }
  const compareIfWanted = async () => {
    if (!core.taskEngine.isOnDuty()) return
    const holds = core.taskEngine.holds.list()
    // Undefined: of this instance alone, which compares the nonces by itself.
    const uncompared = holds.filter(({ comparedAt }) => comparedAt === null)
    const all = holds.find(({ scope }) => scope === everything)
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

function searchesOf({ core, chains, venue }: ComparisonDeps): Searches {
  const searches = new Map<string, (range: SearchRange) => Promise<Findings>>()
  for (const [id, port] of chains.ports) searches.set(id, (range) => searchEvm(core, port, range))
  for (const [id, port] of chains.svmPorts) searches.set(id, (range) => searchSolana(core, port, range))
  if (venue) searches.set(venueChainId, (range) => searchVenue(core, venue, range))
  return searches
}

async function searchEvm({ db }: Core, port: EvmPort, range: SearchRange): Promise<Findings> {
  const deps = { db, findSent, nonceAt, batchIn: executedBatchIn, executionOf }
  const { executions, used } = await findExecutions(deps, port, range)
  const chain = port.chain.row.id
  const raised = Object.entries(used).map(([signer, { from, to }]) => [
    `${chain}:${signer}`,
    { chain, signer, from: String(from), to: String(to) },
  ])
  return { executions: await ofUsers(db, executions), used: Object.fromEntries(raised) }
}

/** No nonce shows what is missing there: everything that the sponsors sent since that moment is looked at. */
async function searchSolana(
  { db }: Core,
  { chain, sponsor }: SvmPort,
  { point, signal }: SearchRange,
): Promise<Findings> {
  if (point === null) return { executions: [], used: {} }
  const sent = await Promise.all(
    sponsor.signers.map((signer) => sentExecutions(chain, signer, { since: point, signal })),
  )
  const executions = sent.flat().map(({ signature, at, ...execution }) => ({
    ...execution,
    chainId: chain.row.id,
    txHash: signature,
    balanceChanges: [],
    executedAt: at,
  }))
  return { executions: await ofUsers(db, executions), used: {} }
}

async function searchVenue({ db }: Core, { client }: Pick<Venue, 'client'>, range: SearchRange) {
  const found = await findAtVenue({ db, venue: client.withUrgency('work'), triggerKind }, range)
  const ofVenue = { chainId: venueChainId, sequence: 0, balanceChanges: [] }
  return { executions: found.map((each) => ({ ...ofVenue, ...each })), used: {} }
}

/** An account that was made after that moment has no user here. */
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

/** Undefined where it does not answer, or takes too long. */
async function findingsOf(
  { core, searches, closing }: State,
  id: string,
  point: Date | null,
): Promise<Findings | undefined> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(searchMsMax)])
  try {
    return await searches.get(id)?.({ point, signal })
  } catch (error) {
    core.log.warn({ error, chain: id }, 'a chain was not compared with the database: will retry')
    return undefined
  }
}

async function compareAll(state: State, { point = null }: MoneyHold): Promise<void> {
  const { core, searches, closing } = state
  const { db, clock, log } = core
  const generation = await readGeneration(db)
  const ids = [...searches.keys()]
  const found = await Promise.all(ids.map((id) => findingsOf(state, id, point)))
  if (closing.aborted) return
  const used: JsonObject = {}
  for (const [at, id] of ids.entries()) {
    const findings = found[at]
    if (!findings) {
      const hold = { scope: id, reason: 'not_compared' as const, since: clock.now(), detail: {}, point }
      await storeHold(db, hold, generation)
      continue
    }
    await storeExecutions(core, findings.executions)
    await endUncompared(core, id)
    Object.assign(used, findings.used)
  }
  await query(
    db,
    `update money_hold set compared_at = $2, detail = detail || $3::jsonb where scope = $1 and compared_at is null`,
    [everything, clock.now(), jsonText(used)],
  )
  log.warn(
    { executions: found.flatMap((each) => each?.executions ?? []).length },
    'the chains were compared with the database',
  )
}

/** What is found is for an operator to adopt: with everything, where that is on hold, and of this chain otherwise. */
async function compareOne(
  state: State,
  { scope, point = null }: MoneyHold,
  all: MoneyHold | undefined,
): Promise<void> {
  const { db, clock } = state.core
  const findings = await findingsOf(state, scope, point)
  if (!findings) return
  const executions = all ? findings.executions : await withoutOwn(db, findings.executions)
  await storeExecutions(state.core, executions)
  if (all || executions.length === 0) {
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

/** A task whose transaction the database has looks it up by itself. */
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
