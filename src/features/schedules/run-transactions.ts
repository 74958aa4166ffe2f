import { venueName } from '#engines/venue/records/order-store.ts'
import type { TaskStatus } from '#kernel/task/task-state.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'
import type { TransactionView } from './execution-schemas.ts'

/**
 * This module lists transactions: tasks that a schedule's chats started, or that their recommendations became, and the
 * fills of a strategy on paper and live. The tasks by which a strategy trades live are shown by their fills.
 */

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
type Fill = {
  fill_id: bigint
  execution_id: string | null
  mode: StrategyMode
  asset: string
  is_buy: boolean
  size: string
  price: string
  amount_usd: string
  fee_usd: string
  realized_pnl_usd: string | null
  reason: string
  is_exit: boolean
  decision_seq: number | null
  tx_hash: string | null
  at: Date
}

/** The number of runs is unlimited, so tasks are searched in this many of the newest runs, and as many fills are. */
const searchedMax = 10_000

const runsSql = `select r.id, r.chat_id from
    (select id, chat_id, version from strategy_execution where strategy_id = $1 order by number desc limit ${searchedMax}) r
    join strategy_version v on v.strategy_id = $1 and v.version = r.version and v.type = 'prompt'`
const tasksSql = `select t.id, r.id as execution_id from (${runsSql}) r
    join task t on t.parent_id = r.id and t.kind <> 'chat'
  union
  select c.task_id, r.id from (${runsSql}) r
    join chat_recommendation c on c.chat_id = r.chat_id and c.task_id is not null`
const fillsOfMode = (mode: StrategyMode): string =>
  `(select mode, fill_id, at from strategy_fill where strategy_id = $1 and mode = '${mode}'
    order by at desc, fill_id desc limit ${searchedMax})`
const matchingSql = `select t.created_at as at, m.id as task_id, m.execution_id, null::text as mode, null::bigint as fill_id
    from (${tasksSql}) m join task t on t.id = m.id
  union all
  select at, null, null, mode, fill_id from (${fillsOfMode('paper')} union all ${fillsOfMode('live')}) f`

/** Returns a page of transactions; the caller has checked that the schedule belongs to the user. */
export async function transactionsOf(
  db: Queryable,
  scheduleId: string,
  { skip, limit }: { skip: number; limit: number },
): Promise<{ items: TransactionView[]; total: number }> {
  const [keys, [counted]] = await Promise.all([
    query<Key>(
      db,
      `select task_id, execution_id, mode, fill_id from (${matchingSql}) m
       order by at desc, task_id desc, fill_id desc offset $2::bigint limit $3::integer`,
      [scheduleId, skip, limit],
    ),
    query<{ total: number }>(db, `select count(*)::integer as total from (${matchingSql}) m`, [scheduleId]),
  ])
  const [tasks, fills] = await Promise.all([movedTasks(db, keys), filled(db, scheduleId, keys)])
  const items = keys.flatMap((key) => viewOfKey(key, { tasks, fills }))
  return { items, total: counted?.total ?? 0 }
}

type Key = {
  task_id: string | null
  execution_id: string | null
  mode: StrategyMode | null
  fill_id: bigint | null
}
const fillKey = ({ mode, fill_id }: Pick<Key, 'mode' | 'fill_id'>): string => `${mode}-${fill_id}`

type Read = { tasks: ReadonlyMap<string, Omit<MovedTask, 'execution_id'>>; fills: ReadonlyMap<string, Fill> }

function viewOfKey(key: Key, { tasks, fills }: Read): TransactionView[] {
  if (key.task_id === null) {
    const fill = fills.get(fillKey(key))
    return fill ? [fillView(fill)] : []
  }
  const task = tasks.get(key.task_id)
  return task && key.execution_id !== null
    ? [transactionView({ ...task, execution_id: key.execution_id })]
    : []
}

async function movedTasks(db: Queryable, keys: readonly Key[]): Promise<Read['tasks']> {
  const ids = keys.flatMap(({ task_id: id }) => id ?? [])
  if (ids.length === 0) return new Map()
  const rows = await query<Omit<MovedTask, 'execution_id'>>(
    db,
    `select id, kind, status, outcome, input, data, result, created_at from task where id = any($1::uuid[])`,
    [ids],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

const fillsSql = `select f.fill_id, f.execution_id, f.mode, f.asset, f.is_buy, trim_scale(f.size)::text as size,
    trim_scale(f.price)::text as price, trim_scale(round(f.size * f.price, 6))::text as amount_usd,
    trim_scale(f.fee_usd)::text as fee_usd, trim_scale(f.realized_pnl_usd)::text as realized_pnl_usd,
    f.reason, f.is_exit, f.at, d.seq as decision_seq, v.tx_hash
  from unnest($2::text[], $3::bigint[]) k (mode, fill_id)
    join strategy_fill f on f.strategy_id = $1 and f.mode = k.mode and f.fill_id = k.fill_id
    left join venue_fill v on f.mode = 'live' and v.venue = '${venueName}' and v.trade_id = f.fill_id
      and v.user_id = (select user_id from strategy where id = $1)
    left join lateral (select seq from strategy_decision d where d.execution_id = f.execution_id
      order by (d.at <= f.at) desc, case when d.at <= f.at then -d.seq else d.seq end limit 1) d on true`

/** Reads fills with the decision that they carry out: the newest one of their run that was made before. */
async function filled(db: Queryable, scheduleId: string, keys: readonly Key[]): Promise<Read['fills']> {
  const wanted = keys.filter(({ fill_id: id }) => id !== null)
  if (wanted.length === 0) return new Map()
  const rows = await query<Fill>(db, fillsSql, [
    scheduleId,
    wanted.map(({ mode }) => mode),
    wanted.map(({ fill_id: id }) => String(id)),
  ])
  return new Map(rows.map((row) => [fillKey(row), row]))
}

export const fillView = (fill: Fill): TransactionView => ({
  id: fillKey(fill),
  execution_id: fill.execution_id,
  task_id: null,
  kind: 'fill',
  mode: fill.mode,
  status: 'completed',
  outcome: 'executed',
  chain_id: null,
  tx_hash: fill.tx_hash,
  asset: fill.asset,
  side: fill.is_buy ? 'buy' : 'sell',
  size: fill.size,
  price: fill.price,
  amount_usd: fill.amount_usd,
  fee: fill.fee_usd,
  fee_token: 'USDC',
  realized_pnl_usd: fill.realized_pnl_usd,
  reason: fill.reason,
  is_exit: fill.is_exit,
  decision_seq: fill.decision_seq,
  created_at: fill.at.toISOString(),
})

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
    realized_pnl_usd: null,
    reason: null,
    is_exit: null,
    decision_seq: null,
    created_at: task.created_at.toISOString(),
  }
}
