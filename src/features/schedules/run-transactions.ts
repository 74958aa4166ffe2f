import type { TaskStatus } from '#kernel/task/task-state.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import type { TransactionView } from './execution-schemas.ts'

/** This module lists transactions: tasks that a schedule's runs started, or that their recommendations became. */

type MovedTask = {
  id: string
  execution_id: string
  kind: string
  status: TaskStatus
  outcome: TransactionView['outcome']
  input: object
  data: object
  result: object | null
  created_at: Date
}

/** The number of runs is unlimited, so transactions are searched in this many of the newest runs. */
const searchedRuns = 10_000

const matchingSql = `select t.id, r.id as execution_id from
    (select id, chat_id from strategy_execution where strategy_id = $1 order by number desc limit ${searchedRuns}) r
    join task t on t.parent_id = r.id and t.kind <> 'chat'
  union
  select c.task_id, r.id from
    (select id, chat_id from strategy_execution where strategy_id = $1 order by number desc limit ${searchedRuns}) r
    join chat_recommendation c on c.chat_id = r.chat_id and c.task_id is not null`

/** Returns a page of transactions; the caller has checked that the schedule belongs to the user. */
export async function transactionsOf(
  db: Queryable,
  scheduleId: string,
  { skip, limit }: { skip: number; limit: number },
): Promise<{ items: TransactionView[]; total: number }> {
  const [rows, [counted]] = await Promise.all([
    query<MovedTask>(
      db,
      `select t.id, m.execution_id, t.kind, t.status, t.outcome, t.input, t.data, t.result, t.created_at
       from (select * from (${matchingSql}) m order by id desc offset $2::bigint limit $3::integer) m
       join task t on t.id = m.id order by t.id desc`,
      [scheduleId, skip, limit],
    ),
    query<{ total: number }>(db, `select count(*)::integer as total from (${matchingSql}) m`, [scheduleId]),
  ])
  return { items: rows.map(transactionView), total: counted?.total ?? 0 }
}

const fieldsOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const lastOf = (value: unknown): Record<string, unknown> =>
  fieldsOf(Array.isArray(value) ? value.at(-1) : undefined)

/** Returns the first of the named fields whose value is text; null if none is. */
function textOf(record: Record<string, unknown>, ...names: string[]): string | null {
  const found = names.map((name) => record[name]).find((each) => typeof each === 'string')
  return typeof found === 'string' ? found : null
}

export function transactionView(task: MovedTask): TransactionView {
  const [input, data, result] = [fieldsOf(task.input), fieldsOf(task.data), fieldsOf(task.result)]
  const [transaction, fill] = [lastOf(data.transactions), lastOf(data.fills)]
  return {
    id: task.id,
    execution_id: task.execution_id,
    task_id: task.id,
    kind: task.kind,
    mode: 'live',
    status: task.status,
    outcome: task.outcome,
    chain_id: textOf(transaction, 'chain_id'),
    tx_hash: textOf(transaction, 'tx_hash') ?? textOf(result, 'tx_hash'),
    asset: textOf(result, 'asset') ?? textOf(input, 'asset', 'token_out'),
    side: textOf(fill, 'side') ?? textOf(input, 'side'),
    size: textOf(result, 'filled_size') ?? textOf(fill, 'size'),
    price: textOf(result, 'avg_price') ?? textOf(fill, 'price'),
    amount_usd: textOf(result, 'volume_usd', 'amount_usd', 'amount_usdc_decimal', 'amount_usdc'),
    fee: textOf(result, 'fee') ?? textOf(fill, 'fee'),
    fee_token: textOf(result, 'fee_token') ?? textOf(fill, 'fee_token'),
    created_at: task.created_at.toISOString(),
  }
}
