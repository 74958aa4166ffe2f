import { setTimeout as delay } from 'node:timers/promises'
import { userTopic } from '#durable/events/notifier.ts'
import { freshMs } from '#durable/time/detect-lost-commits.ts'
import {
  everything,
  type HoldReason,
  holdSentence,
  letTasksLookUp,
  raiseGeneration,
  storeHold,
} from '#durable/time/money-hold.ts'
import { readPoint } from '#durable/time/wal-position-sql.ts'
import { nonceKind } from '#engines/evm-batch/sponsor-load.ts'
import { later } from '#kernel/clock.ts'
import type { Tx } from '#kernel/task/task.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import { type Adoption, adoptExecution, byExecution, readUnadopted } from './adopt-lost-executions.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import type { Row } from './output.ts'
import { raiseCounter } from './raise-nonce-counter.ts'

/**
 * The commands `time`: they show what each gateway has seen of the database, and let money move again after the
 * database went back to an earlier state.
 */

type HoldRow = {
  scope: string
  reason: HoldReason
  since: Date
  point: Date | null
  compared_at: Date | null
  detail: JsonObject
}

const readHolds = (db: Queryable): Promise<HoldRow[]> =>
  query<HoldRow>(db, 'select scope, reason, since, point, compared_at, detail from money_hold order by scope')

const unadoptedSql = `select chain, tx_hash, u.agent_id as "user", execution_id, balance_changes, venue, executed_at
  from found_execution f left join app_user u on u.id = f.user_id where adopted_at is null order by executed_at limit 10000`

const show: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'time show' })
  const holds = await readHolds(pool)
  if (holds.length === 0) session.printLine('Money is not on hold.')
  else session.print(holds.map(({ reason, ...hold }) => ({ ...hold, reason, because: holdSentence(reason) })))
  session.print(
    await query<Row>(
      pool,
      `select id as gateway, beat as heartbeats, timeline, lsn::text as position, seen_at from database_witness
         order by seen_at desc limit 100`,
    ),
  )
  const unadopted = await query<Row>(pool, unadoptedSql)
  if (unadopted.length > 0) session.print(unadopted)
  const adoptedSql = `select count(*)::integer as adopted_executions from found_execution
    where adopted_at is not null having count(*) > 0`
  const adopted = await query<Row>(pool, adoptedSql)
  if (adopted.length > 0) session.print(adopted)
}

/**
 * Puts all money on hold, because other tools than `restore` have restored the database, which the gateways cannot
 * always notice by themselves.
 */
const hold: AdminCommand['run'] = async (session, args) => {
  const now = session.clock.now()
  const since = args.text('since')
  const point = await session.database.transaction(async (tx) => {
    const point = since === undefined ? await readPoint(tx) : momentOf(since, now)
    if (since === undefined && point && later(point, freshMs) > now)
      throw new UsageError(
        'A gateway has run on this database within the last minute: name the moment that it was restored to with --since.',
      )
    const held = { scope: everything, reason: 'restored' as const, since: now, detail: { by: 'time hold' } }
    await storeHold(tx, { ...held, point })
    await session.record(tx, { command: 'time hold', subject: everything, details: { point } })
    return point
  })
  session.printLine(
    `Money is on hold, of each gateway with its next heartbeat: what chains and venue did since ${point?.toISOString() ?? 'the beginning'} is compared by a running gateway.`,
  )
  session.printLine('Then run `time show`, `time adopt` and `time resume`.')
}

function momentOf(text: string, now: Date): Date {
  const moment = new Date(text)
  if (!(moment <= now))
    throw new UsageError('--since is a moment that has passed, such as 2026-01-31T12:00:00Z.')
  return moment
}

const compareMsMax = 60_000

/** Throws if no gateway has a lease, which each heartbeat renews and an orderly stop deletes. */
async function assertGatewayRuns(pool: Queryable): Promise<void> {
  const running = await query(
    pool,
    `select id from instance where lease_until > clock_timestamp() - interval '10 seconds' limit 1`,
  )
  if (running.length === 0)
    throw new UsageError(
      'No gateway is running on this database, by the heartbeats that it knows. Start one: it compares by itself while money is on hold.',
    )
}

/** Asks the gateways to compare the chains with the database, because they know the nodes. */
const compare: AdminCommand['run'] = async (session, args) => {
  const { pool } = session.database
  const scope = args.text('chain') ?? everything
  await assertGatewayRuns(pool)
  const [held] = await query(
    pool,
    `update money_hold set compared_at = null where scope = $1 returning scope`,
    [scope],
  )
  if (!held) throw new UsageError(`${notOnHold(scope)} There is nothing to compare.`)
  await session.record(pool, { command: 'time compare', subject: scope })
  const silent = (await waitForComparison(pool, scope)).filter(({ reason }) => reason === 'not_compared')
  session.print(await query<Row>(pool, unadoptedSql))
  if (silent.length > 0)
    session.print(
      silent.map(({ scope, reason }) => ({ chain: scope, reason, because: holdSentence(reason) })),
    )
}

const notOnHold = (scope: string): string =>
  scope === everything
    ? 'Money is not on hold as a whole; --chain names one whose money is.'
    : `Money of chain ${scope} is not on hold.`

/**
 * Waits until one chain, or everything, was compared with the database. If nothing was found on a chain, its comparison
 * also ends its hold.
 */
async function waitForComparison(pool: Queryable, scope: string): Promise<HoldRow[]> {
  const untilMs = performance.now() + compareMsMax
  for (;;) {
    const holds = await readHolds(pool)
    const hold = holds.find((each) => each.scope === scope)
    if (hold?.compared_at || (!hold && scope !== everything)) return holds
    if (performance.now() > untilMs)
      throw new UsageError(
        `The comparison of ${scope === everything ? 'everything' : `chain ${scope}`} is not done after a minute. It goes on, for up to ten minutes for each chain, and \`time show\` says when it is done; the log of the gateway names nodes that do not answer.`,
      )
    await delay(500)
  }
}

const adopt: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  const holds = await readHolds(pool)
  if (holds.length === 0) throw new UsageError('Money is not on hold: there is nothing to adopt.')
  if (!holds.some(({ compared_at }) => compared_at !== null))
    throw new UsageError(
      'The chains were not compared yet: a running gateway does it while money is on hold.',
    )
  const adoptions: Adoption[] = []
  for (const executions of byExecution(await readUnadopted(pool)))
    adoptions.push(await adoptExecution(session, executions))
  if (adoptions.length === 0) await session.record(pool, { command: 'time adopt' })
  session.print(adoptions)
  await session.notify([...new Set(adoptions.map(({ user_id: userId }) => userTopic(userId)))])
}

const resume: AdminCommand['run'] = async (session, args) => {
  const scope = args.text('chain') ?? everything
  const left = await session.database.transaction(async (tx) => {
    const holds = await readHolds(tx)
    const hold = holds.find((each) => each.scope === scope)
    if (!hold) throw new UsageError(notOnHold(scope))
    if (!args.flag('unseen')) await assertAdopted(tx, hold)
    if (scope === everything) await raiseGeneration(tx)
    await letTasksLookUp(tx)
    await raiseCounters(tx, hold.detail)
    await query(tx, 'delete from money_hold where scope = $1', [scope])
    const { reason, detail } = hold
    await session.record(tx, { command: 'time resume', subject: scope, details: { reason, detail } })
    return holds.filter((each) => each !== hold)
  })
  session.printLine(
    scope === everything
      ? 'Money goes on with the next heartbeat of each gateway'
      : `Money of chain ${scope} goes on with the next heartbeat of each gateway`,
  )
  for (const { scope: chain, reason } of left)
    session.printLine(`Still on hold: ${chain}, because ${holdSentence(reason)}`)
}

async function assertAdopted(tx: Tx, { scope, compared_at }: HoldRow): Promise<void> {
  if (compared_at === null)
    throw new UsageError(
      `${scope === everything ? 'The chains were' : `Chain ${scope} was`} not compared yet: a running gateway does it. Run \`time compare\`, or add --unseen to go on without.`,
    )
  const [open] = await query<{ count: number }>(
    tx,
    `select count(*)::integer as count from found_execution where adopted_at is null and ($1 = $2 or chain = $1)`,
    [scope, everything],
  )
  if (open!.count > 0)
    throw new UsageError(
      `${open!.count} executions are not adopted. Run \`time adopt\` first, or add --unseen to go on without.`,
    )
}

async function raiseCounters(tx: Tx, detail: JsonObject): Promise<void> {
  for (const known of Object.values(detail)) {
    if (!isRecord(known) || typeof known.signer !== 'string' || typeof known.to !== 'string') continue
    const { signer, to: next } = known
    await raiseCounter(tx, { kind: nonceKind, chain: String(known.chain), signer, next })
  }
}

export const timeCommands: readonly AdminCommand[] = [
  {
    name: 'time show',
    changes: false,
    summary:
      'show whether money is on hold and why, what each gateway saw of the database, and what chains and venue did since and is not adopted',
    run: show,
  },
  {
    name: 'time hold',
    options: { since: 'string' },
    summary:
      'hold all money, because the database was restored by other tools than `restore`, to a moment that --since names',
    run: hold,
  },
  {
    name: 'time compare',
    options: { chain: 'string' },
    changes: false,
    summary:
      'let a running gateway compare chains and venue with the database again, and list what the database does not know',
    run: compare,
  },
  {
    name: 'time adopt',
    summary:
      'make tasks of what chains and venue executed and the database does not know, and fire or end the orders that it was for',
    run: adopt,
  },
  {
    name: 'time resume',
    options: { chain: 'string', unseen: 'boolean' },
    summary: 'accept the database as it is and let money go on, of one chain or of all',
    run: resume,
  },
]
