/** A database with as many webhooks as wanted, one of each user; and what a statement reads of it. */
import pg from 'pg'

const rowsOf: Record<string, string> = {
  app_user: `insert into app_user (id, agent_id, auth_scheme, suspended_at, created_at)
    select id, 'agt_' || lpad(n::text, 26, '0'), 'keypair', case when n % 100 = 7 then now() end, now() from users`,
  user_event_seq: `insert into user_event_seq (user_id, seq)
    select id, case when n % 1000 = 3 then 11 else 10 end from users`,
  webhook: `insert into webhook (webhook_id, user_id, url, description, created_at)
    select id, id, 'https://example.com/events', '', now() from users`,
  webhook_cursor: `insert into webhook_cursor
      (webhook_id, user_id, seq, status, attempts, retry_at, is_slow, messages, epoch)
    select id, id, case when failing then 9 else 10 end, 'enabled', case when failing then 1 else 0 end,
      case when failing then now() - make_interval(secs => n % 3600) end, false, 0, 0
    from (select *, n % 10 = 5 as failing from users) u`,
}
/** Ids in the order of time, as the product makes them. */
const usersSql = (from: number, to: number) => `
  with users as (select n, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id
    from generate_series(${from}, ${to}) n)`
const batch = 500_000

/** A thousandth has an event to deliver, a tenth a message to repeat, and a hundredth of the users is suspended. */
export async function insertCursors(pool: pg.Pool, count: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query(
      'set statement_timeout = 0; set session_replication_role = replica; set synchronous_commit = off',
    )
    for (let from = 1; from <= count; from += batch)
      for (const text of Object.values(rowsOf))
        await client.query(usersSql(from, Math.min(count, from + batch - 1)) + text)
    for (const table of Object.keys(rowsOf)) await client.query(`vacuum analyze ${table}`)
  } finally {
    client.release(true)
  }
}

type Node = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Join Filter'?: number
  Plans?: Node[]
}
export type Reading = {
  /** Rows of tables, also those that a filter removed. */
  rows: number
  /** Tables that are read as a whole. */
  wholeTables: string[]
  ms: number
}

const literal = (value: unknown): string => {
  if (Array.isArray(value)) return pg.escapeLiteral(`{${value.join()}}`)
  return pg.escapeLiteral(value instanceof Date ? value.toISOString() : String(value))
}

/** Runs the statement under a generic plan, as a connection that has run it often, and takes back what it has changed. */
export async function readingOf(
  pool: pg.Pool,
  { text, values }: { text: string; values: unknown[] },
): Promise<Reading> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('set local plan_cache_mode = force_generic_plan')
    await client.query(`prepare measured as ${text}`)
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Node; 'Execution Time': number }] }>(
      `explain (analyze, timing off, format json) execute measured(${values.map(literal).join()})`,
    )
    const [found] = rows[0]!['QUERY PLAN']
    const nodes = nodesOf(found.Plan)
    const scans = nodes.filter(
      (node) => node['Relation Name'] !== undefined && /Scan/.test(node['Node Type']),
    )
    return {
      rows: scans.reduce(
        (sum, node) =>
          sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
        0,
      ),
      wholeTables: scans.flatMap((node) =>
        node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== 'instance'
          ? [node['Relation Name']!]
          : [],
      ),
      ms: found['Execution Time'],
    }
  } finally {
    await client.query('rollback').catch(() => {})
    client.release(true)
  }
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
