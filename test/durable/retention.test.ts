/** What is deleted by age, and what money needs for ever. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { retentionJobs } from '#compose/retention.ts'
import type { Config } from '#config.ts'
import { createTableGauges } from '#durable/upkeep/table-gauges.ts'
import { sweep } from '#features/auth/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import type { Sample } from '#kernel/metrics.ts'
import { openInstance } from '../harness/instance.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

const dayMs = 86_400_000
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs)

describe('retention', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  /** Runs every job to its end; returns how many batches each took. */
  const retain = async (settings: Partial<Config> = {}) => {
    await using instance = await openInstance({ databaseUrl: fixture.url, config: settings })
    const batches: Record<string, number> = {}
    for (const job of retentionJobs(instance)) {
      batches[job.name] = 1
      while (await job.runBatch()) batches[job.name]! += 1
    }
    return batches
  }
  const count = async (table: string, user: string) =>
    (
      await fixture.rows<{ n: number }>(
        `select count(*)::integer as n from ${table} where user_id = $1`,
        user,
      )
    )[0]?.n
  const idAt = (at: Date, n: number) => `${minIdAt(at).slice(0, -12)}${n.toString(16).padStart(12, '0')}`

  /** Tasks of one age, each with a key, a reservation and a gas charge. */
  const addTasks = async (
    user: string,
    {
      days,
      ended = true,
      count: n = 1,
      from = 0,
    }: {
      days: number
      ended?: boolean
      count?: number
      from?: number
    },
  ): Promise<string[]> => {
    const at = daysAgo(days)
    const ids = Array.from({ length: n }, (_, each) => idAt(at, from + each + 1))
    await fixture.rows(
      `with t as (insert into task (id, shard, user_id, idempotency_key, kind, kind_version, input, data, step, status, state, outcome,
           deadline, created_at, updated_at, completed_at${(await hasQueue()) ? '' : ', priority, run_at'})
         select id, 0, $2, 'key ' || id, 'test', 1, '{}', '{}', 'only', $4, 'done', $5, $3, $3, $3, $6${(await hasQueue()) ? '' : ', 1, $3'} from unnest($1::uuid[]) id),
       k as (insert into idempotency (user_id, key, operation, body_hash, task_id, at) select $2, 'key ' || id, 'test', '', id, $3 from unnest($1::uuid[]) id),
       p as (insert into policy_spend (task_id, user_id, usd_micros, state, at) select id, $2, 1, 'reserved', $3 from unnest($1::uuid[]) id)
       insert into sponsor_charge (task_id, user_id, chain_id, day, wei, is_final) select id, $2, '1', $3::timestamptz::date, 1, true from unnest($1::uuid[]) id
       returning task_id`,
      ids,
      user,
      at,
      ended ? 'completed' : 'running',
      ended ? 'executed' : null,
      ended ? at : null,
    )
    return ids
  }
  const hasQueue = async () =>
    (
      await fixture.rows(
        `select 1 from information_schema.columns where table_name = 'task' and column_name = 'run_at'`,
      )
    ).length === 0
  const addEffect = (taskId: string) =>
    fixture.rows(
      `with e as (insert into effect (id, task_id, step, kind, intent, signed, external_id, status, policy_receipt, at)
         values ($1::uuid, $1::uuid, 'only', 'test', '{}', '{}', $1::text, 'confirmed', 'none', now()) returning id)
       insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
         select id, 0, 'raw', 'x' || id, 'test', '1', id::text, 1, 'confirmed', now() from e returning effect_id`,
      taskId,
    )
  const taskIdsOf = async (user: string) =>
    (await fixture.rows<{ id: string }>('select id from task where user_id = $1 order by id', user)).map(
      ({ id }) => id,
    )

  test('keeps every task, its key and its effects unless it is set', async () => {
    const user = newUser()
    const tasks = await addTasks(user, { days: 4_000 })
    await addEffect(tasks[0]!)
    await retain()
    assert.deepEqual(await taskIdsOf(user), tasks)
    assert.equal(await count('idempotency', user), 1)
  })

  test('deletes old ended tasks that moved nothing, with what serves them alone, and looks at each task once', async () => {
    const user = newUser()
    await addTasks(user, { days: 60, count: 2_500 })
    const [signed] = await addTasks(user, { days: 61, from: 7 })
    await addEffect(signed!)
    const [booked] = await addTasks(user, { days: 62, from: 8 })
    const asset = newUser()
    await fixture.rows(
      `with a as (insert into account (shard, owner, asset, sub_account) values (0, $1::uuid, $2::text, 'external:0'), (0, $1, $2, 'external:1') returning id)
       insert into transfer (key, debit, credit, amount, state, task_id, reason, at) select $3::text, min(id), max(id), 1, 'pending', $3::uuid, 'test', now() from a returning id`,
      user,
      asset,
      booked,
    )
    const [open] = await addTasks(user, { days: 63, from: 9, ended: false })
    const [young] = await addTasks(user, { days: 20, from: 10 })
    const first = await retain({ TASK_RETENTION_DAYS: 30 })
    assert.deepEqual(await taskIdsOf(user), [open, booked, signed, young])
    assert.equal(await count('idempotency', user), 4)
    assert.equal(await count('sponsor_charge', user), 1, 'the charges of the last month stay')
    assert.ok((first['retention of tasks'] ?? 0) >= 3)
    assert.equal((await retain({ TASK_RETENTION_DAYS: 30 }))['retention of tasks'], 1)
    await retain({ TASK_RETENTION_DAYS: 10 })
    assert.deepEqual(
      await taskIdsOf(user),
      [open, booked, signed],
      'a shorter retention begins at the first task again',
    )
  })

  test('of an old money task the transfers and the signed bytes stay', async () => {
    const user = newUser()
    const [task] = await addTasks(user, { days: 500 })
    await addEffect(task!)
    await retain({ MONEY_TASK_RETENTION_DAYS: 400 })
    assert.deepEqual(await taskIdsOf(user), [])
    assert.equal(await count('idempotency', user), 0)
    const effects = await fixture.rows(
      'select from effect join tx_attempt on effect_id = effect.id where task_id = $1',
      task,
    )
    assert.equal(effects.length, 1)
  })

  test('expired credentials are deleted in batches, and no others', async () => {
    await fixture.rows(
      `insert into spent_signature (digest, expires_at)
       select sha256(n::text::bytea), now() + case when n > 2500 then interval '1 minute' else interval '-1 minute' end
       from generate_series(1, 2501) n returning digest`,
    )
    await sweep(fixture.admin.pool, new Date())
    const [row] = await fixture.rows<{ n: number }>('select count(*)::integer as n from spent_signature')
    assert.equal(row?.n, 1)
  })

  test('the gauges show size, former versions and age by table, and read no table for them', async () => {
    await addTasks(newUser(), { days: 5_000 })
    const read = createTableGauges({ pool: fixture.admin.pool, clock, retention: { task: 7 * dayMs } })
    const metrics = await read()
    const gaugeOf = (name: string) => {
      const { samples = [] } = metrics.find((each) => each.name === name) as { samples?: readonly Sample[] }
      return samples.find(({ labels }) => labels.table === 'task')?.value
    }
    const days = (gaugeOf('portico_table_oldest_row_age_seconds') ?? 0) / 86_400
    assert.ok(Math.abs(days - 5_000) < 0.01, String(days))
    assert.equal(gaugeOf('portico_table_retention_seconds'), 7 * 86_400)
    assert.ok((gaugeOf('portico_table_size_bytes') ?? 0) > 8_192)
    await addTasks(newUser(), { days: 6_000 })
    const again = (await read()).find(({ name }) => name === 'portico_table_oldest_row_age_seconds')
    const sample = (again as { samples: readonly Sample[] }).samples.find(
      ({ labels }) => labels.table === 'task',
    )
    assert.ok((sample?.value ?? 0) < 5_001 * 86_400, 'it is read once a minute')
  })

  test('a reservation stays while its task is open, and the deletion of others changes no sum', async () => {
    const user = newUser()
    const [open] = await addTasks(user, { days: 3, ended: false })
    await addTasks(user, { days: 3, from: 1 })
    await addTasks(user, { days: 0.5, from: 2 })
    await retain()
    const left = await fixture.rows<{ task_id: string }>(
      'select task_id from policy_spend where user_id = $1 order by at',
      user,
    )
    assert.equal(left.length, 2)
    assert.equal(left[0]?.task_id, open)
    const sums = await fixture.rows<{ usd_micros: bigint }>(
      'select usd_micros from policy_spend_minute where user_id = $1',
      user,
    )
    assert.deepEqual(
      sums.map(({ usd_micros }) => Number(usd_micros)),
      [1],
    )
  })

  test('venue records up to the baseline are deleted, but for open orders and adjustments', async () => {
    const [user, second] = [newUser(), newUser()]
    const settings = { VENUE_RECORD_RETENTION_DAYS: 30 }
    const addAccount = (id: string, baseline: Date) =>
      fixture.rows(
        `with u as (insert into app_user (id, agent_id, auth_scheme, created_at)
           values ($1::uuid, 'agt_' || translate(upper(right(replace($1::uuid::text, '-', ''), 26)), 'ILOU', '1111'), 'keypair', now()) returning id)
         insert into venue_account (user_id, venue, account, state, active_at, next_at, baseline_at_ms)
           select id, 'hyperliquid', id::text, 'active', now(), now(), $2 from u returning user_id`,
        id,
        baseline.getTime(),
      )
    await addAccount(user, daysAgo(1))
    await addAccount(second, daysAgo(90))
    const addFill = (id: string, tradeId: number, days: number, cloid: string | null = null) =>
      fixture.rows(
        `insert into venue_fill (user_id, venue, trade_id, order_id, cloid, symbol, signed_size, price, fee, fee_token, cause, at_ms)
         values ($1, 'hyperliquid', $2, 1, $3, 'BTC', 1, 1, 0, 'USDC', 'order', $4) returning trade_id`,
        id,
        tradeId,
        cloid,
        daysAgo(days).getTime(),
      )
    const addOrder = (cloid: string, ended: boolean) =>
      fixture.rows(
        `insert into venue_order (cloid, venue, user_id, task_id, leg, symbol, market, at, ended_at)
         values ($1, 'hyperliquid', $2, $2, 'entry', 'BTC', 'perp', $3, $4) returning cloid`,
        cloid,
        user,
        daysAgo(60),
        ended ? daysAgo(50) : null,
      )
    await addOrder('ended', true)
    await addOrder('open', false)
    await addFill(user, 1, 60, 'ended')
    await addFill(user, 2, 60, 'open')
    await addFill(user, 3, 10)
    await addFill(second, 4, 60)
    await addFill(second, 5, 100)
    for (const [key, reason] of [
      ['funding', null],
      ['adjusted', 'looked at'],
    ])
      await fixture.rows(
        `insert into venue_ledger_entry (user_id, venue, key, kind, balance_key, amount, reason, at_ms)
         values ($1, 'hyperliquid', $2, 'funding', 'cash', 1, $3, $4) returning key`,
        user,
        key,
        reason,
        daysAgo(60).getTime(),
      )
    await retain(settings)
    const fills = async () =>
      (await fixture.rows<{ trade_id: bigint }>('select trade_id from venue_fill order by trade_id')).map(
        ({ trade_id }) => Number(trade_id),
      )
    assert.deepEqual(await fills(), [2, 3, 4], 'what the baseline does not contain yet stays')
    const keys = await fixture.rows<{ key: string }>('select key from venue_ledger_entry')
    assert.deepEqual(
      keys.map(({ key }) => key),
      ['adjusted'],
    )
    const orders = await fixture.rows<{ cloid: string }>('select cloid from venue_order')
    assert.deepEqual(
      orders.map(({ cloid }) => cloid),
      ['open'],
    )
    await addFill(user, 6, 60)
    await retain(settings)
    assert.deepEqual(await fills(), [2, 3, 4, 6], 'a pass is made once a day')
    await fixture.rows(`update maintenance_position set at = now() - interval '2 days' returning name`)
    await retain(settings)
    assert.deepEqual(await fills(), [2, 3, 4])
  })

  test('heartbeats of gateways that were not seen for a month are deleted, and no others', async () => {
    const ids = [newUser(), newUser()]
    await fixture.rows(
      `insert into database_witness (id, beat, seen_at) select id, 7, at
         from unnest($1::uuid[], $2::timestamptz[]) w (id, at) returning id`,
      ids,
      [daysAgo(31), daysAgo(29)],
    )
    await retain()
    const left = await fixture.rows<{ id: string }>(
      'select id from database_witness where id = any($1::uuid[])',
      ids,
    )
    assert.deepEqual(
      left.map(({ id }) => id),
      [ids[1]],
    )
  })
})
