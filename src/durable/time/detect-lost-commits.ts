import type pg from 'pg'
import { witnessAgeMs } from '#durable/upkeep/retention.ts'
import { type Clock, later, monotonicMs } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { WitnessFile } from '#store/database-witness-file.ts'
import { query } from '#store/query.ts'
import { type AcknowledgedAct, createAcknowledged } from './acknowledged-commits.ts'
import { type FoundPosition, judgePosition, type Position, rememberPosition } from './judge-position.ts'
import {
  everything,
  type HoldReason,
  letTasksLookUp,
  type MoneyHold,
  type MoneyHolds,
  storeHold,
} from './money-hold.ts'
import { factQueries, type ServerFacts, type TimeRow, timeColumns } from './wal-position-sql.ts'

/**
 * Detects that the database went back: a restored backup, a failover that lost commits, or a node that returned
 * with an older timeline. Each heartbeat adds one to a row of this instance, and the reply is compared with what
 * this instance remembers, even over its restarts.
 */

/** How a chain compares with the database; `unknown` means that the node of the chain does not answer. */
export type ChainComparison = { chainId: string; found: 'clean' | 'unknown' } | LostOnChain
export type LostOnChain = { chainId: string; found: 'lost'; detail: JsonObject }
export type CompareChains = (point: Date | null) => Promise<ChainComparison[]>

/**
 * A chain for which the database has no nonce counter to compare, so that its executions have to be searched. With
 * `afterFailover` it is searched also after the database server was replaced, because bytes that were sent before can
 * still be executed.
 */
export type SearchedChain = { chainId: string; afterFailover: boolean }

type DatabaseTimeDeps = {
  pool: pg.Pool
  holds: MoneyHolds
  clock: Clock
  random: Random
  log: Log
  /** The file holds what earlier processes stored about the database; without it, this one knows only what it has seen itself. */
  witnessFile: WitnessFile | undefined
  leaseMs: number
}

export type DatabaseTime = {
  /** Returns what the heartbeat's statement needs: the facts to read, $4 the witness, $5 the last timeline. */
  heartbeat(): Promise<{ facts: ServerFacts; values: [string, number | null] }>
  observe(row: TimeRow): Promise<void>
  /** Judges the database before anything is accepted; only chains that do not answer are compared later. */
  open(compareChains: CompareChains, searchedChains?: readonly SearchedChain[]): Promise<void>
  /** Records a commit that a client or a chain knows of. */
  acknowledge(task: { id: string; version: number; user_id: string }): void
  acknowledgeAct(act: AcknowledgedAct): void
  /** Whether no heartbeat was committed for two leases, so that the database takes no writes. */
  isSilent(): boolean
}

/** No restore is this quick: with a younger last heartbeat, a gateway without a memory searches no chain. */
export const freshMs = 60_000

/** Reads the position of the database without adding a heartbeat, and also whether anything was ever signed. */
const openSql = (facts: ServerFacts) =>
  `select (select beat from database_witness where id = $1) as beat, ${timeColumns(facts, '$2')},
    not exists (select from effect) as "isEmpty"`

type TimeState = {
  deps: DatabaseTimeDeps
  acknowledged: ReturnType<typeof createAcknowledged>
  facts?: Promise<ServerFacts>
  database?: string
  witness: string
  seen: Position | undefined
  /** The position in the last reply of the database, which is remembered once a check has passed. */
  found: FoundPosition | undefined
  point: Date | null
  foundPoint: Date | null
  seenPoint: Date | null
  compareChains: CompareChains | undefined
  searchedChains: readonly SearchedChain[]
  checking: Promise<void> | undefined
  beatAtMs: number | undefined
}

export function createDatabaseTime(deps: DatabaseTimeDeps): DatabaseTime {
  const state: TimeState = {
    deps,
    acknowledged: createAcknowledged(deps.pool),
    witness: uuidv7(deps.clock.now(), deps.random),
    seen: undefined,
    found: undefined,
    point: null,
    foundPoint: null,
    seenPoint: null,
    compareChains: undefined,
    searchedChains: [],
    checking: undefined,
    beatAtMs: undefined,
  }
  return {
    async heartbeat() {
      return { facts: await factsOf(state), values: [state.witness, state.seen?.timeline ?? null] }
    },
    async observe(row) {
      // The row includes the beat of this heartbeat itself, so one beat is subtracted.
      const found = { ...positionOf(row), beat: Number(row.beat) - 1, isEmpty: false }
      state.beatAtMs = monotonicMs()
      applyRow(state, row)
      state.found = { ...found, beat: found.beat + 1 }
      // Without an earlier memory, and before `open`, there is nothing to judge the database by.
      if (state.seen || state.compareChains) await judge(state, found)
      rememberIfKnown(state)
    },
    open(compareChains, searchedChains = []) {
      state.searchedChains = searchedChains
      return open(state, compareChains)
    },
    acknowledge: state.acknowledged.add,
    acknowledgeAct: state.acknowledged.addAct,
    isSilent: () => state.beatAtMs !== undefined && monotonicMs() - state.beatAtMs > 2 * deps.leaseMs,
  }
}

async function open(state: TimeState, compareChains: CompareChains): Promise<void> {
  const { pool, witnessFile } = state.deps
  state.compareChains = compareChains
  const [binding] = await query<{ value: string }>(
    pool,
    `select value from database_binding where key = 'database'`,
  )
  state.database = binding!.value
  const record = witnessFile?.read(state.database)
  if (record) {
    const { witness, lsn, point, ...position } = record
    state.witness = witness
    state.seen = { ...position, lsn: lsn === null ? null : BigInt(lsn) }
    state.seenPoint = point ? new Date(point) : null
  }
  const facts = await factsOf(state)
  const [row] = await query<TimeRow & { isEmpty: boolean }>(pool, openSql(facts), [
    state.witness,
    state.seen?.timeline ?? null,
  ])
  if (!row) throw new Error('the database returned no row about itself')
  // Retention has deleted this gateway's row of heartbeats, so its memory no longer counts.
  if (row.beat === null && isDeleted(state)) state.seen = undefined
  applyRow(state, row)
  const found = { ...positionOf(row), isEmpty: row.isEmpty }
  // Only the stored WAL position is remembered: a server after a harmless failover may be behind the present one.
  state.found = { ...found, lsn: found.storedLsn }
  if (witnessFile?.isRestored()) {
    logRestored(state)
    await hold(state, 'restored', { detail: {}, generation: found.generation })
    witnessFile.forgetRestored()
  } else await judge(state, found)
  await state.checking
  rememberIfKnown(state)
}

const isDeleted = ({ seenPoint, deps }: TimeState): boolean =>
  seenPoint !== null && later(seenPoint, witnessAgeMs) < deps.clock.now()

/** Finds which facts of the server can be read; the others, forbidden or missing there, stay unknown. */
const factsOf = (state: TimeState): Promise<ServerFacts> => {
  const readable = async (fact: keyof ServerFacts) =>
    query(state.deps.pool, factQueries[fact]).then(
      () => true,
      (error: { code?: unknown; message?: string }) => {
        // The codes mean insufficient privilege, undefined function and unsupported feature.
        if (['42501', '42883', '0A000'].includes(String(error.code))) return false
        // Aurora shows no WAL position without logical replication.
        if (error.code === '55000' && /wal_level/.test(error.message ?? '')) return false
        throw error
      },
    )
  state.facts ??= (async () => ({
    system: await readable('system'),
    timeline: await readable('timeline'),
    lsn: await readable('lsn'),
  }))()
  state.facts.catch(() => delete state.facts)
  return state.facts
}

const unitsOf = (text: string | null) => (text === null ? null : BigInt(text))

const positionOf = (row: TimeRow) => ({
  generation: row.generation,
  beat: Number(row.beat ?? 0),
  system: row.system,
  timeline: row.timeline,
  lsn: unitsOf(row.lsn),
  storedLsn: unitsOf(row.storedLsn),
})

function applyRow(state: TimeState, row: TimeRow): void {
  const { holds } = state.deps
  const dateOf = (text: string | null) => (text === null ? null : new Date(text))
  if (row.holds.some(({ reason }) => reason === 'restored')) logRestored(state)
  holds.setStored(
    row.holds.map(({ compared_at, ...each }) => ({
      ...each,
      since: new Date(each.since),
      point: dateOf(each.point),
      comparedAt: dateOf(compared_at),
    })),
  )
  state.foundPoint = row.point
  // During a hold the point of comparison stays: later heartbeats belong to the database that went back.
  if (!holds.find()) state.point = pointOf(state, row)
}

/** Logs once that the database was restored, before the hold takes effect here. */
function logRestored({ deps: { holds, log } }: TimeState): void {
  if (holds.list().some(({ reason }) => reason === 'restored')) return
  log.error({}, 'the database was restored: money is on hold')
}

/** Returns the earlier of the last heartbeat seen here and the last one stored: a loss may lie between the two. */
function pointOf({ seen, seenPoint }: TimeState, { generation, point }: TimeRow): Date | null {
  if (seen?.generation !== generation || seenPoint === null || point === null) return point
  return seenPoint < point ? seenPoint : point
}

async function judge(state: TimeState, found: FoundPosition): Promise<void> {
  const { log } = state.deps
  const judgement = judgePosition(state.seen, found)
  if (judgement.verdict === 'check') return check(state, judgement.reason, found)
  if (judgement.verdict === 'go') {
    // An operator has accepted the database as it is, so the earlier memory ends.
    if (state.seen && found.generation > state.seen.generation) state.seen = undefined
    return
  }
  if (!state.deps.holds.find())
    log.error(
      { reason: judgement.reason, ...factsText(state.seen, found) },
      'the database went back: money is on hold',
    )
  const detail = factsText(state.seen, found)
  await hold(state, judgement.reason, { detail, generation: found.generation })
}

const factsText = (seen: Position | undefined, found: FoundPosition): JsonObject => {
  const text = (position: Position): JsonObject => ({
    heartbeats: position.beat,
    system: position.system,
    timeline: position.timeline,
    position: position.lsn === null ? null : String(position.lsn),
  })
  return { ...(seen && { seen: text(seen) }), found: text(found) }
}

type Judged = { scope?: string; detail: JsonObject; generation: number }

/** Holds money here at once, and on other instances with their next heartbeat; an earlier hold stays. */
async function hold(
  { deps, point }: TimeState,
  reason: HoldReason,
  { scope = everything, ...judged }: Judged,
): Promise<void> {
  const held: MoneyHold = {
    scope,
    reason,
    since: deps.clock.now(),
    detail: judged.detail,
    point,
    comparedAt: null,
  }
  const others = deps.holds.list().filter(({ comparedAt }) => comparedAt !== undefined)
  const isHeld = others.some((each) => each.scope === scope)
  if (!isHeld) deps.holds.setStored([...others, held])
  deps.holds.clearLocal(scope)
  await storeHold(deps.pool, held, judged.generation)
}

/** Compares the database with the chains; money is on hold meanwhile: for seconds, or until the nodes answer. */
function check(state: TimeState, reason: HoldReason, { generation }: FoundPosition): void {
  if (state.checking) return
  const { holds, clock, log } = state.deps
  holds.setLocal({ scope: everything, reason, since: clock.now(), detail: {} })
  state.checking = compare(state, reason, generation)
    .catch((error: unknown) => {
      log.warn({ error }, 'the database was not compared with the chains: the next heartbeat tries again')
    })
    .finally(() => {
      state.checking = undefined
    })
}

async function compare(state: TimeState, reason: HoldReason, generation: number): Promise<void> {
  const { holds, log } = state.deps
  const lost = await state.acknowledged.findLost()
  if (lost) {
    log.error(lost, 'the database lost acknowledged commits: money is on hold')
    return hold(state, 'lost_commits', { detail: { acknowledged: lost }, generation })
  }
  const compared = (await state.compareChains?.(state.point)) ?? []
  const onChains = compared.filter((each): each is LostOnChain => each.found === 'lost')
  if (onChains.length > 0) {
    const detail = Object.assign({}, ...onChains.map((each) => each.detail))
    log.error(detail, 'the chains have batches that the database does not know: money is on hold')
    return hold(state, 'lost_commits', { detail, generation })
  }
  const silent = compared.filter(({ found }) => found === 'unknown').map(({ chainId }) => chainId)
  for (const scope of [...silent, ...searchedFor(state, reason)])
    await hold(state, 'not_compared', { scope, detail: {}, generation })
  // The chains were compared by nonces alone, and the venue not at all, so tasks look up their executions.
  if (reason === 'new_timeline' || !isFresh(state)) await letTasksLookUp(state.deps.pool)
  if (state.found) remember(state, state.found)
  holds.clearLocal(everything)
}

/** Returns the chains to search: no heartbeat shows what an instance sent that died together with the server. */
function searchedFor(state: TimeState, reason: HoldReason): string[] {
  const isUnwatched = reason === 'no_memory' && !isFresh(state)
  return state.searchedChains
    .filter(({ afterFailover }) => isUnwatched || (reason === 'new_timeline' && afterFailover))
    .map(({ chainId }) => chainId)
}

const isFresh = ({ point, deps }: TimeState): boolean =>
  point !== null && later(point, freshMs) > deps.clock.now()

/** Remembers the found position, but not during a hold or a comparison, whose result is not known yet. */
function rememberIfKnown(state: TimeState): void {
  if (state.found && !state.checking && !state.deps.holds.find()) remember(state, state.found)
}

function remember(state: TimeState, found: FoundPosition): void {
  const { witnessFile, log } = state.deps
  state.seen = rememberPosition(state.seen, found)
  state.seenPoint = state.foundPoint
  state.acknowledged.turn()
  if (!witnessFile || state.database === undefined) return
  const { lsn, ...position } = state.seen
  try {
    witnessFile.write(state.database, {
      ...position,
      witness: state.witness,
      lsn: lsn === null ? null : String(lsn),
      point: state.seenPoint?.toISOString() ?? null,
    })
  } catch (error) {
    log.warn({ error }, 'what was seen of the database could not be stored in the data folder')
  }
}
