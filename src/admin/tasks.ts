import { setTimeout as delay } from 'node:timers/promises'
import { createCommitter } from '#durable/commit.ts'
import { releaseLease } from '#durable/lease.ts'
import { taskTopic, userTopic } from '#durable/notifier.ts'
import { asTask, isLive, readEffects, stepView, type Task } from '#durable/task-row.ts'
import { isUuid, systemRandom } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Effect, EffectUpdate, EndResult, Move, TaskView, Tx } from '#kernel/task.ts'
import { query } from '#store/query.ts'
import { type Arguments, oneOf, UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { jsonText } from './output.ts'
import type { Session } from './session.ts'

const outcomes = ['executed', 'partial', 'not_executed'] as const
type Resolution = {
  outcome: (typeof outcomes)[number]
  evidence: string
  txHash: string | undefined
  outUnits: bigint | undefined
}

const listTasks: AdminCommand['run'] = async (session, args) => {
  const state = args.text('state') ?? 'review'
  const { pool } = session.database
  await session.record(pool, { command: 'tasks list', details: { state } })
  const text = `select t.id, t.kind, t.state, t.step, u.agent_id, t.created_at, t.updated_at, t.deadline,
      (select string_agg(distinct c.external_id, ' ') from effect e join tx_attempt c on c.effect_id = e.id where e.task_id = t.id) as sent
    from task_queue q join task t on t.id = q.task_id left join app_user u on u.id = t.user_id
    where ($1 = 'all' or t.state = $1) order by t.updated_at limit 1000`
  session.print(await query(pool, text, [state]))
}

async function readTask({ database }: Session, id: string): Promise<Task> {
  const rows = isUuid(id) ? await query(database.pool, 'select * from task where id = $1', [id]) : []
  if (!rows[0]) throw new UsageError(`There is no task ${id}.`)
  return asTask(rows[0] as Task)
}

type TransferSummary = {
  key: string
  asset: string
  from: string
  to: string
  amount: string
  posted: string | null
  state: string
  reason: string
}

const readTransfers = ({ database }: Session, taskId: string): Promise<TransferSummary[]> =>
  query<TransferSummary>(
    database.pool,
    `select t.key, d.asset, d.sub_account as "from", c.sub_account as "to", t.amount::text as amount, t.posted::text as posted,
       t.state, t.reason
     from transfer t join account d on d.id = t.debit join account c on c.id = t.credit
     where t.task_id = $1 order by t.id`,
    [taskId],
  )

const showTask: AdminCommand['run'] = async (session, args) => {
  const task = await readTask(session, args.positional('task'))
  const { pool } = session.database
  await session.record(pool, { command: 'tasks show', subject: task.id })
  const [effects, transfers] = await Promise.all([
    readEffects(pool, task.id),
    readTransfers(session, task.id),
  ])
  const sent = effects.map(({ signed: _signed, txAttempts, ...effect }) => ({
    ...effect,
    // The signed bytes are long; explorers need only the hash.
    transactions: txAttempts.map(({ raw: _raw, ...attempt }) => attempt),
  }))
  const shown = { task, effects: sent, transfers }
  session.printLine(jsonText(shown))
}

const leaseSeconds = 60
const claimMsMax = 15_000

/**
 * Waits for a running look-up: the task is claimed only while no instance works on it. The command has a lease of its own
 * meanwhile, as an instance has.
 */
async function claimTask({ database, instanceId }: Session, { id }: Task): Promise<Task> {
  const startedMs = performance.now()
  while (true) {
    const [row] = await query(
      database.pool,
      `with registered as (insert into instance (id, started_at, lease_until)
         values ($2, clock_timestamp(), clock_timestamp() + make_interval(secs => $3))
         on conflict (id) do update set lease_until = excluded.lease_until),
       free as materialized (select id from task join task_queue on task_id = id
         where id = $1 and state = 'review' and owner is null for no key update of task, task_queue skip locked),
       owned as (update task_queue set owner = $2 from free where task_id = free.id)
       update task set version = version + 1, cancel_requested = false from free where task.id = free.id returning task.*`,
      [id, instanceId, leaseSeconds],
    )
    if (row) return asTask(row as Task)
    const [now] = await query<{ state: string }>(database.pool, 'select state from task where id = $1', [id])
    if (now?.state !== 'review')
      throw new UsageError(
        `Task ${id} is not in review: its state is ${now?.state}. It may have ended meanwhile.`,
      )
    if (performance.now() - startedMs > claimMsMax)
      throw new UsageError(`Task ${id} is leased to an instance. Try again.`)
    await delay(50)
  }
}

/** A signed action that a chain or venue could still execute would contradict `not_executed`. */
function assertExpired(effects: readonly Effect[], now: Date): void {
  const open = effects.filter(isLive).find(({ validUntil }) => validUntil !== null && validUntil > now)
  if (!open) return
  const until = open.validUntil!.toISOString()
  throw new UsageError(`An action that the task signed can be executed until ${until}. Wait until then.`)
}

function resultOf(
  resolution: Resolution,
  effects: readonly Effect[],
  transfers: readonly TransferSummary[],
  actor: string,
): EndResult {
  const { outcome, evidence, txHash } = resolution
  const proof: JsonObject = { operator: actor, evidence, ...(txHash !== undefined && { tx_hash: txHash }) }
  const live = effects.filter(isLive)
  if (outcome === 'partial') {
    if (live.length > 0) throw new UsageError('What the task has signed may still be executed: wait for it.')
    const message = 'An operator determined that nothing came back for what the task has sent'
    const error = { code: 'ended_by_operator', message, retryable: false }
    return { end: 'failed', outcome, error, data: { operator: proof } }
  }
  if (outcome === 'not_executed') {
    const dropped = live.map(({ id }): EffectUpdate => ({ effectId: id, status: 'dropped', proof }))
    const message = 'An operator determined that nothing was executed'
    const details: JsonObject = { ended_by: 'operator', ...(txHash !== undefined && { tx_hash: txHash }) }
    const error = { code: 'ended_by_operator', message, retryable: false, details }
    return { end: 'failed', outcome, error, data: { operator: proof }, effects: dropped }
  }
  const moves = transfers
    .filter(({ state }) => state === 'pending')
    .map(({ key }): Move => ({ move: 'post', key }))
  const confirmed = live.map(
    ({ id }): EffectUpdate => ({
      effectId: id,
      status: 'confirmed',
      proof,
      ...(txHash !== undefined && { attemptExternalId: txHash }),
    }),
  )
  const where = txHash === undefined ? '' : `, in transaction ${txHash}`
  const note = `an operator determined that it was executed${where}`
  return {
    end: 'completed',
    outcome,
    result: null,
    data: { operator: proof, note },
    moves,
    effects: confirmed,
  }
}

function readResolution(args: Arguments): Resolution {
  const evidence = args.text('evidence')
  if (!evidence) throw new UsageError('--evidence is required: state where you looked, and what you saw.')
  const outcome = oneOf('--outcome', outcomes, args.text('outcome'))
  const units = args.text('amount-out')
  if (units !== undefined && !/^[1-9]\d{0,77}$/.test(units))
    throw new UsageError('--amount-out must be a whole number of smallest units.')
  return {
    outcome,
    evidence,
    txHash: args.text('tx-hash'),
    outUnits: units === undefined ? undefined : BigInt(units),
  }
}

type Ending = { resolution: Resolution; ending: EndResult }

/** Where the own end of the task does more than to report it, this one does the same. */
async function ownEnd(
  { config, transactions, clock, instanceId }: Session,
  task: TaskView,
  { resolution: { outcome, outUnits, txHash }, ending }: Ending,
): Promise<EndResult> {
  // Imports on first use, as other commands do not need it.
  const { operatorEnds } = await import('#compose/operator-ends.ts')
  const ends = operatorEnds({ config, transactions, clock, random: systemRandom, instanceId })
  const own = ends.get(task.kind)
  if (!own) {
    if (outcome !== 'partial' && outUnits === undefined) return ending
    throw new UsageError('--outcome partial and --amount-out are for swaps and their orders.')
  }
  const finding = { outcome, outUnits: outUnits ?? null, txHash: txHash ?? null, at: clock.now() }
  const ended = own(task, ending, finding)
  if ('refusal' in ended) throw new UsageError(ended.refusal)
  return ended
}

/** Ends a task through the same fenced commit as its steps, so that holds, effects and events stay consistent. */
const endTask: AdminCommand['run'] = async (session, args) => {
  const { database, instanceId, transactions, clock, actor } = session
  const resolution = readResolution(args)
  const known = await readTask(session, args.positional('task'))
  const task = await claimTask(session, known)
  try {
    const effects = await readEffects(database.pool, task.id)
    if (resolution.outcome === 'not_executed') assertExpired(effects, clock.now())
    const transfers = await readTransfers(session, task.id)
    const ending = await ownEnd(session, stepView(task, effects), {
      resolution,
      ending: resultOf(resolution, effects, transfers, actor),
    })
    const details = {
      kind: task.kind,
      ...resolution,
      ...(resolution.outUnits !== undefined && { outUnits: String(resolution.outUnits) }),
      holds: transfers.filter(({ state }) => state === 'pending'),
    }
    const writes = async (tx: Tx) => {
      await session.record(tx, { command: 'tasks end', subject: task.id, details })
      await ending.writes?.(tx)
    }
    const commits = createCommitter({ transactions, clock, random: systemRandom })
    if (!(await commits.step(task, { ...ending, writes })))
      throw new UsageError(`Task ${task.id} was changed by another process. Try again.`)
  } finally {
    await releaseLease({ pool: database.pool, instanceId })
  }
  await session.notify([taskTopic(task.id, task.user_id), userTopic(task.user_id)])
  session.printLine(`Task ${task.id} has ended: ${resolution.outcome}`)
}

export const taskCommands: readonly AdminCommand[] = [
  {
    name: 'tasks list',
    positionals: [],
    options: { state: 'string' },
    changes: false,
    summary: 'list tasks in review, or in another --state, or in all of them (--state all)',
    run: listTasks,
  },
  {
    name: 'tasks show',
    positionals: ['<task>'],
    options: {},
    changes: false,
    summary: 'show a task with its effects, transactions, transfers and steps',
    run: showTask,
  },
  {
    name: 'tasks end',
    positionals: ['<task>'],
    options: { outcome: 'string', evidence: 'string', 'tx-hash': 'string', 'amount-out': 'string' },
    changes: true,
    summary:
      'end a task in review as executed (holds are posted) or not_executed (holds are voided); a deposit of a swap also as partial',
    run: endTask,
  },
]
