import type { StoredCaller } from '#engines/stored-callers/stored-caller.ts'
import type { Tx } from '#kernel/task/task.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import type { StrategyExecutionRow, StrategyRow, StrategyVersionRow } from '#store/tables/strategies.ts'
import type { ChatEnd, Refusal, RunError, StartedTask } from './run-outcome.ts'

/** This module holds the statements by which a run reads and writes the database. */

/** The caller in whose name a version runs, and the value that a person has approved for each order of a run. */
export type Authority = StoredCaller & {
  approvedMicros?: string
  approvedUntil?: string
  /** A hash of the version and of the access that the approval was given for. */
  approvedTerms?: string
}
export type Run = Pick<
  StrategyExecutionRow,
  | 'id'
  | 'strategy_id'
  | 'user_id'
  | 'version'
  | 'number'
  | 'execution_type'
  | 'mode'
  | 'slot'
  | 'started_at'
  | 'chat_id'
> &
  Pick<StrategyRow, 'title' | 'notify' | 'thread_id' | 'activated_at'> &
  Pick<
    StrategyVersionRow,
    'type' | 'query' | 'agent' | 'calendar' | 'config' | 'budget_usd' | 'paper_balance_usd'
  > & {
    strategy_status: StrategyRow['status']
    guards: { cooldown_seconds?: number } | null
    compiled: { operations?: string[] } | null
    /** The access of the user who started the run by hand, or else of who has activated its version. */
    authority: Authority | null
    has_following: boolean
  }

export async function findRun(db: Queryable, id: string): Promise<Run> {
  const [row] = await query<Run>(
    db,
    `select e.id, e.strategy_id, e.user_id, e.version, e.number, e.execution_type, e.mode, e.slot, e.started_at, e.chat_id,
       s.title, s.notify, s.thread_id, s.activated_at, s.status as strategy_status,
       s.following_at is not null as has_following, v.type, v.query, v.agent, v.calendar, v.config, v.budget_usd::text,
       v.paper_balance_usd::text, v.guards, v.compiled,
       coalesce(e.authority, v.authority) as authority
     from strategy_execution e join strategy s on s.id = e.strategy_id
       join strategy_version v on v.strategy_id = e.strategy_id and v.version = e.version
     where e.id = $1`,
    [id],
  )
  if (!row) throw new Error(`the execution ${id} is gone`)
  return row
}

/**
 * Whether a run may begin: an exit always, a manual run unless the schedule is disabled, the run of a slot while the
 * schedule is active. A schedule is completed with its last slot, but the run of that slot may still begin.
 */
export function isRunnable(
  status: StrategyRow['status'],
  { execution_type: type }: Pick<Run, 'execution_type'>,
): boolean {
  if (type === 'exit') return true
  return type === 'manual' ? status !== 'disabled' : status === 'active' || status === 'completed'
}

/** Reads the schedule again under a lock, so that its status and its access stay until the run has begun. */
export async function mayBegin(tx: Tx, run: Run): Promise<boolean> {
  const [row] = await query<Pick<StrategyRow, 'status'>>(
    tx,
    'select status from strategy where id = $1 for share',
    [run.strategy_id],
  )
  if (!row || !isRunnable(row.status, run)) return false
  // A statement that waited for the lock still sees the earlier authority, so a second statement reads the authority.
  return (await findRun(tx, run.id)).authority?.endedAt === undefined
}

/**
 * Whether an earlier run of the schedule has not ended. A live exit waits only for runs that have decided, because one that
 * has not may wait for candles until its deadline, and finds the exit before it acts.
 */
export async function hasOlderRun(db: Queryable, run: Run): Promise<boolean> {
  const hasDecided = run.execution_type === 'exit' && run.mode === 'live'
  const rows = await query(
    db,
    `select e.id from strategy_execution e join task_queue q on q.task_id = e.id
     where e.strategy_id = $1 and e.number < $2 and e.status in ('pending', 'running')
       and e.execution_type <> 'backtest'
       and (not $3 or exists (select from strategy_decision d where d.execution_id = e.id)) limit 1`,
    [run.strategy_id, run.number, hasDecided],
  )
  return rows.length > 0
}

/** Returns when the last run ended that started any task. */
export async function lastActed(db: Queryable, strategyId: string): Promise<Date | undefined> {
  const [row] = await query<{ ended_at: Date }>(
    db,
    `select ended_at from strategy_execution where strategy_id = $1 and ended_at is not null
       and decision ->> 'action' = 'adjust' order by number desc limit 1`,
    [strategyId],
  )
  return row?.ended_at
}

type TurnRow = {
  status: ChatEnd['status']
  answer: string | null
  last_event: string | null
  last_data: JsonObject | null
  credits_used: number | null
}
export type RunChat = ChatEnd & { creditsUsed: number }

const responsesMax = 200

/** Returns the chat of a run, with the refusals of those operations that the query orders. */
export async function findChat(db: Queryable, chatId: string, ordered: readonly string[]): Promise<RunChat> {
  const turns = query<TurnRow>(
    db,
    `select status, answer, last_event, last_data, credits_used from chat_turn where chat_id = $1`,
    [chatId],
  )
  const responses = query<{ data: JsonObject }>(
    db,
    `select data from chat_event where chat_id = $1 and event = 'tool_response' order by seq limit ${responsesMax}`,
    [chatId],
  )
  const [turn] = await turns
  if (!turn) throw new Error(`the chat ${chatId} is gone`)
  return {
    status: turn.status,
    answer: turn.answer || null,
    error: turn.last_event === 'error' ? (turn.last_data as RunError) : null,
    refusals: (await responses).flatMap(({ data }) => refusalsIn(data, ordered)),
    creditsUsed: turn.credits_used ?? 0,
  }
}

/** Returns the answer of a run's chat so far, and the credits that the chat has used. */
export async function chatSoFar(
  db: Queryable,
  chatId: string | null,
): Promise<Pick<RunChat, 'answer' | 'creditsUsed'>> {
  const [turn] = await query<Pick<TurnRow, 'answer' | 'credits_used'>>(
    db,
    'select answer, credits_used from chat_turn where chat_id = $1',
    [chatId],
  )
  return { answer: turn?.answer || null, creditsUsed: turn?.credits_used ?? 0 }
}

/** Returns refusals from a result: an error, or the reason why an operation was recommended and not started. */
function refusalsIn({ data }: JsonObject, ordered: readonly string[]): Refusal[] {
  if (!isRecord(data) || !ordered.includes(String(data.name)) || !isRecord(data.output)) return []
  const { code, message, reason, detail, recommendation_id: recommended } = data.output
  if (typeof code === 'string') return [{ code, message: String(message ?? code) }]
  if (typeof reason === 'string') return [{ code: reason, message: String(detail ?? reason) }]
  if (recommended === undefined) return []
  return [{ code: 'recommended', message: `It recommended ${data.name} and did not start it` }]
}

/** The tasks that the chat of a run has started, oldest first. A run that did not begin has no chat. */
export const startedTasks = (db: Queryable, runId: string, chatId: string | null): Promise<StartedTask[]> =>
  query(
    db,
    `select id as task_id, kind, status, outcome, error from task
     where parent_id = $1 and id is distinct from $2 order by id`,
    [runId, chatId],
  )

/** Whether the chat of a run, or a task that the run has started, is still open. */
export async function hasOpenTasks(db: Queryable, runId: string): Promise<boolean> {
  const text = `select id from task where parent_id = $1 and status in ('pending', 'running') limit 1`
  return (await query(db, text, [runId])).length > 0
}

type Begun = { run: Run; chatId: string | null; threadId: string | null; at: Date }

export async function storeBegin(tx: Tx, { run, chatId, threadId, at }: Begun): Promise<void> {
  await query(
    tx,
    `update strategy_execution set status = 'running', started_at = $2, chat_id = $3 where id = $1`,
    [run.id, at, chatId],
  )
  // A full thread was replaced by a new one, which the schedule uses from now on, unless its user has chosen another.
  if (threadId !== null && threadId !== run.thread_id)
    await query(
      tx,
      'update strategy set thread_id = $2 where id = $1 and thread_id is not distinct from $3',
      [run.strategy_id, threadId, run.thread_id],
    )
  await addEvents(
    tx,
    run.id,
    [{ type: 'log', data: { text: 'The run began', ...(chatId !== null && { chat_id: chatId }) } }],
    at,
  )
}

export type RunEvent = { type: 'log' | 'trade' | 'error' | 'done'; data: JsonObject }

/** Adds events to a run, numbered on from its last event. */
export const addEvents = (tx: Tx, runId: string, events: readonly RunEvent[], at: Date) =>
  query(
    tx,
    `insert into strategy_event (execution_id, seq, type, data, created_at)
     select $1, (select coalesce(max(seq), 0) from strategy_event where execution_id = $1) + e.n, e.type, e.data, $3
     from jsonb_to_recordset($2::jsonb) e (n integer, type text, data jsonb)`,
    [runId, jsonText(events.map((event, at) => ({ n: at + 1, ...event }))), at],
  )

const copiedMax = 1_000

/** Copies the plan and the calls of the chat to the run; the pieces of the answer stay in the chat alone. */
export const copyChatEvents = (tx: Tx, runId: string, chatId: string, at: Date) =>
  query(
    tx,
    `insert into strategy_event (execution_id, seq, type, data, created_at)
     select $1, (select coalesce(max(seq), 0) from strategy_event where execution_id = $1)
       + row_number() over (order by seq), event, data, $3
     from (select seq, event, data from chat_event where chat_id = $2
       and event in ('planning', 'tool_call', 'tool_response') order by seq limit ${copiedMax}) e`,
    [runId, chatId, at],
  )

export type EndedRun = Pick<
  StrategyExecutionRow,
  | 'status'
  | 'outcome'
  | 'skip_reason'
  | 'error'
  | 'decision'
  | 'summary'
  | 'answer'
  | 'credits_used'
  | 'realized_pnl_usd'
>

export const storeEnd = (tx: Tx, runId: string, end: EndedRun, at: Date) =>
  query(
    tx,
    `update strategy_execution set status = $2, outcome = $3, skip_reason = $4, error = $5::jsonb, decision = $6::jsonb,
       summary = $7, answer = $8, credits_used = $9, ended_at = $10, realized_pnl_usd = $11, spent_usd = (
         select trim_scale(coalesce(sum(usd_micros), 0) / 1000000.0) from policy_spend p join task t on t.id = p.task_id
         where t.parent_id = $1 and p.state = 'reserved')
     where id = $1`,
    [
      runId,
      end.status,
      end.outcome,
      end.skip_reason,
      end.error && jsonText(end.error),
      end.decision && jsonText(end.decision),
      end.summary,
      end.answer,
      end.credits_used,
      at,
      end.realized_pnl_usd,
    ],
  )

/** Counts the ended orders of a schedule by what they were worth against its budget, in place of what they reserved. */
export const settleSpend = (tx: Tx, { strategy_id: id }: Pick<Run, 'strategy_id'>, at: Date) =>
  query(tx, 'select strategy_spend_settle($1, $2)', [id, at])

export type LockedSchedule = Pick<StrategyRow, 'status' | 'version' | 'activated_at'>

/** Locks the schedule of a run, and returns its state, which may have changed since the step has read the run. */
export async function lockSchedule(tx: Tx, { strategy_id: id }: Run): Promise<LockedSchedule> {
  const [row] = await query<LockedSchedule>(
    tx,
    'select status, version, activated_at from strategy where id = $1 for update',
    [id],
  )
  if (!row) throw new Error(`the schedule ${id} is gone`)
  return row
}

/**
 * Adds the ended run of a slot to the number of runs, or to the number of skipped slots. An active schedule is
 * completed when it reaches its maximum of runs. The caller has locked the schedule.
 */
export const countEnd = (tx: Tx, { strategy_id: id }: Run, { hasRun, at }: { hasRun: boolean; at: Date }) =>
  query(
    tx,
    `update strategy s set run_count = s.run_count + $2, skipped_count = s.skipped_count + 1 - $2,
       status = case when c.is_last then 'completed' else s.status end,
       next_at = case when c.is_last then null else s.next_at end,
       following_at = case when c.is_last then null else s.following_at end,
       updated_at = case when c.is_last then $3 else s.updated_at end
     from (select b.id, b.status = 'active' and b.run_count + $2 >= v.max_runs as is_last
       from strategy b join strategy_version v on v.strategy_id = b.id and v.version = b.version where b.id = $1) c
     where s.id = c.id`,
    [id, hasRun ? 1 : 0, at],
  )

export type PastRun = Pick<StrategyExecutionRow, 'number' | 'status' | 'skip_reason'>
const pastMax = 50

/** The scheduled runs since the last activation, newest first. */
export const pastRuns = (tx: Tx, run: Run, { activated_at: since }: LockedSchedule): Promise<PastRun[]> =>
  query(
    tx,
    `select number, status, skip_reason from strategy_execution where strategy_id = $1 and ended_at is not null
       and execution_type in ('scheduled', 'catch_up') and created_at >= $2 order by number desc limit ${pastMax}`,
    [run.strategy_id, since ?? new Date(0)],
  )

export type MadeFile = { id: string; name: string; size: number }
type RunFiles = { run: Run; chatId: string | null; files: readonly MadeFile[]; at: Date }

/** The most bytes that the files of a schedule's runs may have; the oldest files are removed first. */
const strategyBytesMax = 50 * 1_048_576

/** Links the files of a run and of its chat to the schedule. */
export async function storeFiles(tx: Tx, { run, chatId, files, at }: RunFiles): Promise<void> {
  if (chatId === null && files.length === 0) return
  await query(
    tx,
    `insert into strategy_file (file_id, strategy_id, execution_id, path, size, created_at)
     select f.id, $1, $2, $3 || f.name, f.size, $4 from (
       select file_id as id, name, size from chat_file where chat_id = $5
       union all select id, name, size
         from jsonb_to_recordset($6::jsonb) r (id uuid, name text, size integer)) f
     on conflict do nothing`,
    [run.strategy_id, run.id, `runs/${run.number}/`, at, chatId, jsonText(files)],
  )
  await query(
    tx,
    `delete from strategy_file where file_id in (
       select file_id from (select file_id, sum(size) over (order by file_id desc) as bytes
         from strategy_file where strategy_id = $1) f where bytes > $2)`,
    [run.strategy_id, strategyBytesMax],
  )
}
