import { setTimeout as delay } from 'node:timers/promises'
import { taskTopic, userTopic } from '#durable/events/notifier.ts'
import { releaseLease } from '#durable/run/lease.ts'
import { createCommitter } from '#durable/run/step-committer.ts'
import { asTask, readEffects, stepView, type Task } from '#durable/task/task-row.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isUuid, systemRandom } from '#kernel/id.ts'
import type { EndResult, TaskView, Tx } from '#kernel/task/task.ts'
import { liveStates } from '#kernel/task/task-state.ts'
import { query } from '#store/query.ts'
import { recordFoundEffect } from '#store/record-found-effect.ts'
import { oneOf, UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { endingOf, type Resolution, readResolution, soughtEffect, withSought } from './operator-task-end.ts'
import { jsonText } from './output.ts'
import type { Session } from './session.ts'

/**
 * Selects tasks in review, and tasks that have been looked up for an hour and past their deadline, with nothing signed
 * that can still execute.
 */
const needsOperator = `(t.state = 'review' or (t.state = 'reconciling'
  and greatest(t.created_at + interval '1 hour', t.deadline) < clock_timestamp()
  and not exists (select from effect e where e.task_id = t.id and e.status in ('prepared', 'sent', 'unknown')
    and coalesce(e.valid_until, e.at + interval '2 days') > clock_timestamp())))`

const listTasks: AdminCommand['run'] = async (session, args) => {
  const state = oneOf('--state', ['open', 'all', ...liveStates], args.text('state') ?? 'open')
  const { pool } = session.database
  await session.record(pool, { command: 'tasks list', details: { state } })
  const text = `select t.id, t.kind, t.state, t.step, u.agent_id, t.created_at, t.updated_at, t.deadline,
      (select string_agg(distinct c.external_id, ' ') from effect e join tx_attempt c on c.effect_id = e.id where e.task_id = t.id) as sent
    from task_queue q join task t on t.id = q.task_id left join app_user u on u.id = t.user_id
    where ($1 = 'all' or t.state = $1 or ($1 = 'open' and ${needsOperator})) order by t.updated_at limit 1000`
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

/** Claims a task for this process, under a lease like that of an instance. Waits until no instance runs the task. */
async function claimTask({ database, instanceId }: Session, { id }: Task): Promise<Task> {
  const startedMs = performance.now()
  while (true) {
    const [row] = await query(
      database.pool,
      `with registered as (insert into instance (id, started_at, lease_until)
         values ($2, clock_timestamp(), clock_timestamp() + make_interval(secs => $3))
         on conflict (id) do update set lease_until = excluded.lease_until),
       free as materialized (select t.id from task t join task_queue q on q.task_id = t.id
         where t.id = $1 and ${needsOperator} and q.owner is null for no key update of t, q skip locked),
       owned as (update task_queue set owner = $2 from free where task_id = free.id)
       update task set version = version + 1 from free where task.id = free.id returning task.*`,
      [id, instanceId, leaseSeconds],
    )
    if (row) return asTask(row as Task)
    const [now] = await query<{ state: string; isOpen: boolean }>(
      database.pool,
      `select t.state, ${needsOperator} as "isOpen" from task t where t.id = $1`,
      [id],
    )
    if (!now?.isOpen)
      throw new UsageError(
        `Task ${id} is not in review: its state is ${now?.state}. It may have ended meanwhile, or what it signed can still be executed.`,
      )
    if (performance.now() - startedMs > claimMsMax)
      throw new UsageError(`Task ${id} is leased to an instance. Try again.`)
    await delay(50)
  }
}

/** Adds to the operator's end of a task what the last step of its own kind would have booked. */
async function endOfKind(
  { config, transactions, clock, instanceId }: Session,
  task: TaskView,
  { ending, resolution }: { ending: EndResult; resolution: Resolution },
): Promise<EndResult> {
  // The import is lazy, because other commands do not need it.
  const { createOperatorEnds } = await import('#compose/operator-task-ends.ts')
  const ends = createOperatorEnds({ config, transactions, clock, random: systemRandom, instanceId })
  const endOf = ends.get(task.kind)
  if (!endOf)
    throw new UsageError(`This release does not know how to end tasks of the kind ${task.kind} by hand.`)
  const ended = endOf(task, ending, resolution)
  if ('refusal' in ended) throw new UsageError(ended.refusal)
  return ended
}

const resolutionDetails = ({ inUnits, outUnits, at: _at, ...reported }: Resolution) => ({
  ...reported,
  ...(inUnits !== null && { inUnits: String(inUnits) }),
  ...(outUnits !== null && { outUnits: String(outUnits) }),
})

/** Ends a task through the same fenced commit as its steps, so that holds, effects and events stay consistent. */
const endTask: AdminCommand['run'] = async (session, args) => {
  const { database, instanceId, transactions, clock, actor } = session
  const finding = readResolution(args, clock.now())
  const known = await readTask(session, args.positional('task'))
  const task = await claimTask(session, known)
  try {
    const effects = await readEffects(database.pool, task.id)
    const transfers = await readTransfers(session, task.id)
    const pending = transfers.filter(({ state }) => state === 'pending')
    const view = stepView(task, effects)
    const resolution = withSought(view, finding)
    const found = soughtEffect({ ...view, step: task.step }, resolution)
    const ending = await endOfKind(session, view, {
      resolution,
      ending: endingOf({ task: view, pending, actor }, resolution),
    })
    const details = { kind: task.kind, ...resolutionDetails(resolution), holds: pending }
    const writes = async (tx: Tx) => {
      // The operator's end of a task outweighs a request to cancel it.
      await query(tx, 'update task set cancel_requested = false where id = $1', [task.id])
      await session.record(tx, { command: 'tasks end', subject: task.id, details })
      if (found) await recordFoundEffect(tx, found)
      await ending.writes?.(tx)
    }
    const commits = createCommitter({ transactions, clock, random: systemRandom })
    const committed = await commits.step(task, { ...ending, writes }).catch((error: unknown) => {
      throw error instanceof Fault ? new UsageError(error.message) : error
    })
    if (!committed) throw new UsageError(`Task ${task.id} was changed by another process. Try again.`)
  } finally {
    await releaseLease({ pool: database.pool, instanceId })
  }
  await session.notify([taskTopic(task.id, task.user_id), userTopic(task.user_id)])
  session.printLine(`Task ${task.id} has ended: ${finding.outcome}`)
}

export const taskCommands: readonly AdminCommand[] = [
  {
    name: 'tasks list',
    options: { state: 'string' },
    changes: false,
    summary:
      'list tasks that need an operator, or those in a --state, or all that have not ended (--state all)',
    run: listTasks,
  },
  {
    name: 'tasks show',
    positionals: ['<task>'],
    changes: false,
    summary: 'show a task with its effects, transactions, transfers and steps',
    run: showTask,
  },
  {
    name: 'tasks end',
    positionals: ['<task>'],
    options: {
      outcome: 'string',
      evidence: 'string',
      'tx-hash': 'string',
      payment: 'string',
      'amount-in': 'string',
      'amount-out': 'string',
    },
    summary:
      'end a task in review as executed (holds are posted), partial or not_executed (holds are voided), as its kind would have ended it',
    run: endTask,
  },
]
