/**
 * Years of use, written by the database itself: tasks that have ended, with their keys, events, effects, transfers,
 * orders and reservations, as the engine leaves them. Columns that a table does not have are passed over.
 */
import type pg from 'pg'

export type GrowthSize = { tasks: number; heavyUsers: number; lightUsers: number }

/** A fifth of the tasks belongs to users with up to 100,000 each, the rest to users with about a hundred. */
export const sizeOf = (tasks: number): GrowthSize => ({
  tasks,
  heavyUsers: Math.max(2, Math.round((tasks * 0.2) / 100_000)),
  lightUsers: Math.max(8, Math.round((tasks * 0.8) / 100)),
})

const tables = [
  'task',
  'idempotency',
  'user_event',
  'user_event_seq',
  'effect',
  'tx_attempt',
  'account',
  'transfer',
  'policy_spend',
  'policy_spend_minute',
  'venue_order',
  'venue_fill',
]
const days = 180
const asset = 'growth:usd'
/** Whose shares the positions are. */
export const vaultRef = { chainId: 'growth', vault: 'vault' }
export const shares = `${vaultRef.chainId}:${vaultRef.vault}`
const chunk = 250_000

/** What task n is: the functions are inlined into the inserts. */
const functions = ({ tasks, heavyUsers, lightUsers }: GrowthSize, startMs: number) => [
  `create function g_heavy(i bigint) returns uuid language sql immutable as $$ select md5('heavy' || i)::uuid $$`,
  `create function g_light(i bigint) returns uuid language sql immutable as $$ select md5('light' || i)::uuid $$`,
  `create function g_user(n bigint) returns uuid language sql immutable as $$
     select case when n % 5 = 0 then g_heavy((n / 5) % ${heavyUsers}) else g_light((n - n / 5 - 1) % ${lightUsers}) end $$`,
  // Which of its user's tasks it is, from 0.
  `create function g_rank(n bigint) returns bigint language sql immutable as $$
     select case when n % 5 = 0 then (n / 5) / ${heavyUsers} else (n - n / 5 - 1) / ${lightUsers} end $$`,
  `create function g_ms(n bigint) returns bigint language sql immutable as $$
     select ${startMs}::bigint + n * ${days * 86_400_000}::bigint / ${tasks} $$`,
  `create function g_at(n bigint) returns timestamptz language sql immutable as $$ select to_timestamp(g_ms(n) / 1000.0) $$`,
  `create function g_id(n bigint) returns uuid language sql immutable as $$
     select (lpad(to_hex(g_ms(n)), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || substr(md5(n::text), 1, 15))::uuid $$`,
  `create function g_kind(n bigint) returns text language sql immutable as $$
     select (array['earn_deposit', 'earn_deposit', 'earn_deposit', 'earn_deposit', 'earn_withdraw', 'perp_open', 'perp_open', 'perp_open',
       'perp_open', 'perp_open', 'perp_open', 'perp_open', 'perp_close', 'perp_close', 'perp_close', 'perp_close', 'spot_buy', 'spot_buy',
       'spot_sell', 'perp_setup'])[1 + (g_rank(n) * 7 + n) % 20] $$`,
  `create function g_status(n bigint) returns text language sql immutable as $$
     select case when (g_rank(n) * 13 + n) % 100 < 92 then 'completed' when (g_rank(n) * 13 + n) % 100 < 99 then 'failed' else 'cancelled' end $$`,
  `create function g_signed(n bigint) returns boolean language sql immutable as $$ select g_status(n) = 'completed' and n % 10 < 6 $$`,
]

const rows = (table: string, object: string, where = 'true', join = '') =>
  `insert into ${table} ${table === 'transfer' ? 'overriding system value' : ''}
   select r.* from (select n from generate_series($1::bigint, $2::bigint) n where ${where}) of ${join},
     lateral jsonb_populate_record(null::${table}, jsonb_build_object(${object})) r`

/** Each completed deposit has opened a position; few of a user's positions have shares. */
const opensPosition = `g_kind(n) = 'earn_deposit' and g_status(n) = 'completed'`
const hasShares = `${opensPosition} and g_rank(n) % 50 = 0`

const positions: readonly string[] = [
  `insert into account (shard, owner, asset, sub_account) select 0, g_user(n), '${shares}', 'position:' || g_id(n)
     from generate_series($1::bigint, $2::bigint) n where ${opensPosition} order by n`,
  `insert into earn_position (id, user_id, chain_id, vault, created_at) select g_id(n), g_user(n), '${vaultRef.chainId}',
     '${vaultRef.vault}', g_at(n) from generate_series($1::bigint, $2::bigint) n where ${opensPosition}`,
]

const isVenue = `g_kind(n) like any(array['perp_open', 'perp_close', 'spot%'])`

/** One statement for a range of tasks each. */
const inserts = ({ tasks }: GrowthSize): Record<string, string> => ({
  task: rows(
    'task',
    `'id', g_id(n), 'shard', 0, 'user_id', g_user(n), 'idempotency_key', 'key-' || n, 'kind', g_kind(n), 'kind_version', 1,
     'input', jsonb_build_object('amount_usdc', n % 1000, 'asset', 'BTC'),
     'data', jsonb_build_object('market', case when g_kind(n) like 'spot%' then 'spot' else 'perp' end, 'symbol', 'BTC', 'asset', 0,
       'account', md5(n::text), 'position_id', g_id(n)),
     'step', 'confirm', 'status', g_status(n), 'state', 'done',
     'outcome', case g_status(n) when 'completed' then 'executed' else 'not_executed' end,
     'result', jsonb_build_object('tx_hash', md5(n::text) || md5((n + 1)::text), 'order_id', n::text, 'order_status', 'filled', 'filled_size', '1'),
     'cancel_requested', false, 'priority', 1, 'run_at', g_at(n), 'deadline', g_at(n) + interval '15 minutes', 'attempts', 0,
     'epoch', 1, 'commits', 3, 'version', 4, 'created_at', g_at(n), 'updated_at', g_at(n), 'completed_at', g_at(n) + interval '2 seconds'`,
  ),
  idempotency: rows(
    'idempotency',
    `'user_id', g_user(n), 'key', 'key-' || n, 'operation', g_kind(n), 'body_hash', md5(n::text) || md5(n::text), 'task_id', g_id(n), 'at', g_at(n)`,
  ),
  // Within the days that events are stored.
  user_event: `insert into user_event (user_id, seq, type, task_id, body, at)
     select g_user(n), g_rank(n) * 3 + e, (array['task.created', 'task.progress', 'task.completed'])[e], g_id(n),
       jsonb_build_object('task_id', g_id(n), 'kind', g_kind(n), 'status', g_status(n), 'state', 'done'),
       now() - interval '6 days' + (g_ms(n) - g_ms(0)) * interval '1 ms' / 31
     from generate_series($1::bigint, $2::bigint) n, generate_series(1, 3) e`,
  effect: rows(
    'effect',
    `'id', g_id(n), 'task_id', g_id(n), 'step', 'prepare', 'kind', 'evm_batch', 'intent', jsonb_build_object('calls', md5(n::text)),
     'signed', jsonb_build_object('signature', repeat(md5(n::text), 4)), 'external_id', 'effect-' || n, 'status', 'confirmed',
     'policy_receipt', md5(n::text), 'proof', jsonb_build_object('block', n), 'at', g_at(n)`,
    'g_signed(n)',
  ),
  tx_attempt: rows(
    'tx_attempt',
    `'effect_id', g_id(n), 'n', 0, 'raw', repeat(md5(n::text), 8), 'external_id', 'attempt-' || n, 'nonce_kind', 'evm', 'chain', '8453',
     'signer', 'sponsor-' || n % 4, 'nonce', n / 4, 'status', 'confirmed', 'at', g_at(n)`,
    'g_signed(n)',
  ),
  transfer: rows(
    'transfer',
    `'id', n, 'key', g_id(n) || ':spend', 'debit', 1 + n % 16, 'credit', a.id, 'amount', 1, 'posted', 1, 'state', 'posted',
     'task_id', g_id(n), 'reason', 'deposit', 'at', g_at(n), 'settled_at', g_at(n), 'settled_seq', n`,
    `g_kind(n) like 'earn%' and g_status(n) = 'completed'`,
    `join account a on a.owner = g_user(n) and a.asset = '${asset}' and a.sub_account = 'wallet'`,
  ),
  shares: rows(
    'transfer',
    `'id', ${tasks} + n, 'key', g_id(n) || ':shares', 'debit', 17 + n % 16, 'credit', a.id, 'amount', 1, 'posted', 1, 'state', 'posted',
     'task_id', g_id(n), 'reason', 'deposit', 'at', g_at(n), 'settled_at', g_at(n), 'settled_seq', ${tasks} + n`,
    hasShares,
    `join account a on a.owner = g_user(n) and a.asset = '${shares}' and a.sub_account = 'position:' || g_id(n)`,
  ),
  policy_spend: rows(
    'policy_spend',
    `'task_id', g_id(n), 'user_id', g_user(n), 'usd_micros', 1000000, 'authorized_micros', 1000000, 'state', 'reserved', 'at', g_at(n)`,
    `g_signed(n) and g_at(n) > now() - interval '2 days'`,
  ),
  venue_order: rows(
    'venue_order',
    `'cloid', 'cloid-' || n, 'venue', 'hyperliquid', 'user_id', g_user(n), 'task_id', g_id(n), 'leg', 'entry', 'symbol', 'BTC',
     'market', case when g_kind(n) like 'spot%' then 'spot' else 'perp' end, 'is_buy', true, 'size', 1, 'price', 100, 'reduce_only', false,
     'at', g_at(n), 'status', 'filled', 'ended_at', g_at(n) + interval '1 second'`,
    `${isVenue} and g_rank(n) % 3 = 0`,
  ),
  venue_fill: rows(
    'venue_fill',
    `'user_id', g_user(n), 'venue', 'hyperliquid', 'trade_id', n, 'order_id', n, 'cloid', 'cloid-' || n, 'symbol', 'BTC',
     'base', case when g_kind(n) like 'spot%' then 'HYPE' end, 'quote', 'USDC', 'signed_size', 1, 'price', 100, 'fee', 0, 'fee_token', 'USDC',
     'cause', 'order', 'at_ms', g_ms(n)`,
    `${isVenue} and g_rank(n) % 3 = 0`,
  ),
})

const accounts = ({ heavyUsers, lightUsers }: GrowthSize) => [
  ...[asset, shares].map(
    (each) =>
      `insert into account (shard, owner, asset, sub_account) select 0, '00000000-0000-0000-0000-000000000000', '${each}', 'external:' || i
     from generate_series(0, 15) i order by i`,
  ),
  `insert into account (shard, owner, asset, sub_account) select 0, g_heavy(i), '${asset}', 'wallet' from generate_series(0, ${heavyUsers - 1}) i`,
  `insert into account (shard, owner, asset, sub_account) select 0, g_light(i), '${asset}', 'wallet' from generate_series(0, ${lightUsers - 1}) i`,
]
/** What follows from the rows above. */
const sums = [
  `update account a set avail = s.units, version = s.n from (select credit as id, sum(amount) as units, count(*) as n from transfer group by 1) s where a.id = s.id`,
  `update account a set avail = -s.units, version = s.n from (select debit as id, sum(amount) as units, count(*) as n from transfer group by 1) s where a.id = s.id`,
  `insert into user_event_seq select user_id, max(seq) from user_event group by 1`,
  `insert into policy_spend_minute select user_id, date_trunc('minute', at), sum(usd_micros) from policy_spend group by 1, 2`,
  `select setval(pg_get_serial_sequence('transfer', 'id'), (select max(id) + 1 from transfer))`,
  `select setval('transfer_settled_seq', (select max(id) + 1 from transfer))`,
]

type Definition = { drop: string; create: string }

/** Constraints with an index, foreign keys, and plain indexes: dropped for the load, and built once at its end. */
async function definitions(
  client: pg.ClientBase,
): Promise<{ indexes: Definition[]; foreignKeys: Definition[] }> {
  const constraints = await client.query<{ table: string; name: string; definition: string; type: string }>(
    `select conrelid::regclass::text as "table", conname as name, pg_get_constraintdef(oid) as definition, contype as type
     from pg_constraint where contype in ('p', 'u', 'f') and (conrelid = any($1::regclass[]) or confrelid = any($1::regclass[]))`,
    [tables],
  )
  const plain = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition from pg_index i
     where i.indrelid = any($1::regclass[]) and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`,
    [tables],
  )
  const ofConstraint = ({ table, name, definition }: (typeof constraints.rows)[number]): Definition => ({
    drop: `alter table ${table} drop constraint ${name}`,
    create: `alter table ${table} add constraint ${name} ${definition}`,
  })
  return {
    foreignKeys: constraints.rows.filter(({ type }) => type === 'f').map(ofConstraint),
    indexes: [
      ...constraints.rows.filter(({ type }) => type !== 'f').map(ofConstraint),
      ...plain.rows.map(({ name, definition }) => ({ drop: `drop index ${name}`, create: definition })),
    ],
  }
}

/** Fills a migrated, empty database, on two connections. */
export async function grow(pool: pg.Pool, size: GrowthSize): Promise<void> {
  const setUp = async (client: pg.ClientBase) => {
    await client.query(`set synchronous_commit = off`)
    await client.query(`set session_replication_role = replica`)
    await client.query(`set maintenance_work_mem = '768MB'`)
    await client.query(`set statement_timeout = 0`)
  }
  const clients = [await pool.connect(), await pool.connect()]
  try {
    for (const client of clients) await setUp(client)
    const [first] = clients as [pg.PoolClient, pg.PoolClient]
    /** Both connections take the next statement when they are free. */
    const runAll = async (jobs: { text: string; values?: unknown[] }[]) => {
      const work = async (client: pg.PoolClient) => {
        for (let job = jobs.shift(); job; job = jobs.shift()) await client.query(job.text, job.values)
      }
      await Promise.all(clients.map(work))
    }
    for (const text of functions(size, Date.now() - days * 86_400_000)) await first.query(text)
    for (const text of accounts(size)) await first.query(text)
    const { indexes, foreignKeys } = await definitions(first)
    const isKeyOfAccount = ({ drop }: Definition) => /\b(table account|index account)/.test(drop)
    const built = indexes.filter((each) => !isKeyOfAccount(each))
    for (const { drop } of [...foreignKeys, ...built]) await first.query(drop)
    const ranges = Array.from({ length: Math.ceil(size.tasks / chunk) }, (_, i) => [
      i * chunk + 1,
      Math.min((i + 1) * chunk, size.tasks),
    ])
    const overRanges = (texts: readonly string[]) =>
      runAll(texts.flatMap((text) => ranges.map((values) => ({ text, values }))))
    await overRanges(positions)
    for (const table of ['account', 'earn_position']) await first.query(`vacuum (analyze) ${table}`)
    await overRanges(Object.values(inserts(size)))
    await runAll(built.map(({ create }) => ({ text: create })))
    for (const text of sums) await first.query(text)
    for (const { create } of foreignKeys) await first.query(create)
    await runAll(tables.map((table) => ({ text: `vacuum (analyze) ${table}` })))
    await first.query('checkpoint')
  } finally {
    for (const client of clients) client.release(true)
  }
}
