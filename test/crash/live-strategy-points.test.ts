/**
 * hummingbot #3324, a position that is not seen after a restart: kill -9 anywhere in the run of a live strategy that enters,
 * trips its guard and closes, also between a fill and its settlement. It enters once, its lots are right, and it exits once.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { authorityFields } from '../chat/schedule-fixture.ts'
import { bearer, eventually, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { bySize, isNightly, isShort } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp } from './crash-app.ts'
import { killAtSample } from './failpoints.ts'
import { newTrader } from './venue-points.ts'
import { frozenAccounts, recordOf, traded, type VenueCall, venueOf } from './venue-record.ts'

const pointPattern =
  /^(db:(task_accept|task_step|insert strategy_decision|insert strategy_fill|update strategy_account|insert strategy_account|select strategy_account|insert venue_order|select strategy_spend_settle|insert strategy_execution)|net:hyperliquid)/
/** The slot, the entry, the guard that starts the exit, and the decision of this. */
const needed = [
  /^db:insert strategy_execution:after@[12]$/,
  /^db:insert strategy_decision:after@2$/,
  /^net:hyperliquid:after@1$/,
  /^db:task_step:before@1$/,
  /^db:task_accept:after@1$/,
]
const phases = ['slot', 'entry', 'guard', 'exit'] as const
const deaths = new Map<(typeof phases)[number], number>()
/** The steps of the entry and of the exit pass the same points one after another. */
const passesOf = (name: string) =>
  /task_step|task_accept|net:hyperliquid|strategy_account|strategy_fill/.test(name) ? 12 : 2
const env = { FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000' }
/** A guard that trips while gateways are killed has closed everything after this time. */
const flatMsMax = 60_000
const pointsMax = bySize({ short: 1, full: 16, nightly: 60 })

let app: CrashApp
let venue: VenueCall
let survivor: Gateway
let user: Customer
let userId: string

before(async () => {
  app = await createCrashApp()
  venue = venueOf(app.control)
  await venue('POST', '/settings', { walking: false })
  await venue('POST', '/price', { coin: 'BTC', price: 100_000 })
  survivor = await app.gateway(env)
  user = await newTrader(survivor, venue)
  const { body } = await http<{ outcome: string }>(`${survivor.url}/v1/perp/setup?wait=true&timeout=60`, {
    method: 'POST',
    body: {},
    headers: { ...bearer(user), 'idempotency-key': 'setup' },
    timeoutMs: 90_000,
  })
  assert.equal(body.outcome, 'executed', JSON.stringify(body))
  const { rows } = await app.admin.query<{ id: string }>('select id from app_user where agent_id = $1', [
    user.agentId,
  ])
  userId = rows[0]!.id
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

const condition = {
  asset: 'BTC',
  enter_if: [{ left: 'sma_20', is: 'above', right: '1' }],
  order_notional_usd: '200',
  leverage: 5,
  stop_atr: '20',
  target_atr: '40',
}

/** A live strategy whose guard trips by the fees of its entry, and whose slot is now. */
async function addDueStrategy(): Promise<string> {
  const id = crypto.randomUUID()
  const calendar = {
    type: 'interval',
    every_seconds: 86_400,
    timezone: 'UTC',
    starts_at: '2026-01-01T00:00:00.000Z',
  }
  await app.admin.query(
    `with made as (
       insert into strategy (id, user_id, title, version, status, notify, next_at, activated_at, created_at, updated_at)
       values ($1, $2, 'A strategy', 1, 'active', 'all', now(), now(), now(), now()))
     insert into strategy_version (strategy_id, version, type, query, agent, mode, calendar, on_missed, catch_up_seconds,
       config, guards, budget_usd, paper_balance_usd, compiled, authority, created_at)
     values ($1, 1, 'condition', 'A strategy', 'ProAgent', 'live', $3, 'run_latest', 600, $4, $5, 1000, 1000, $6, $7, now())`,
    [
      id,
      userId,
      JSON.stringify(calendar),
      JSON.stringify(condition),
      JSON.stringify({ max_loss_usd: '0.01' }),
      JSON.stringify({ operations: [], notes: [] }),
      JSON.stringify(authorityFields(user)),
    ],
  )
  return id
}

type Ends = { entries: string; exits: string; open: string }
const endsOf = async (id: string): Promise<Ends> =>
  (
    await app.admin.query<Ends>(
      `select count(*) filter (where execution_type = 'scheduled') as entries,
         count(*) filter (where execution_type = 'exit' and status = 'completed') as exits,
         count(*) filter (where ended_at is null) as open
       from strategy_execution where strategy_id = $1`,
      [id],
    )
  ).rows[0]!

/** What there is of a strategy that did not come to its end. */
const recordsOf = async (id: string) =>
  (
    await app.admin.query<{ record: object }>(
      `select json_build_object('runs', (select json_agg(e) from (select execution_type, status, outcome, skip_reason, error, decision
           from strategy_execution where strategy_id = $1 order by number) e),
         'account', (select json_build_object('state', state, 'cursor', cursor, 'watch_at', watch_at)
           from strategy_account where strategy_id = $1),
         'tasks', (select json_agg(t) from (select t.kind, t.status, t.state, t.outcome, t.error, t.created_at from task t
           join strategy_execution e on e.id = t.parent_id or e.id = t.id where e.strategy_id = $1) t)) as record`,
      [id],
    )
  ).rows[0]?.record

async function assertOnce(id: string, at: string): Promise<void> {
  await eventually(
    async () => {
      const { exits, open } = await endsOf(id)
      const { rows } = await app.admin.query<{ positions: object; watch_at: Date | null }>(
        `select state -> 'positions' as positions, watch_at from strategy_account where strategy_id = $1`,
        [id],
      )
      const isClosed = rows[0] && Object.keys(rows[0].positions).length === 0 && rows[0].watch_at === null
      return exits === '1' && open === '0' && isClosed ? true : undefined
    },
    `${at}: one exit, and nothing open`,
    120_000,
  ).catch(async (cause: unknown) => {
    throw new Error(`${at}: ${JSON.stringify(await recordsOf(id))}`, { cause })
  })
  const { rows: tasks } = await app.admin.query<{ kind: string; count: string }>(
    `select t.kind, count(*) filter (where t.outcome <> 'not_executed') as count
     from task t join strategy_execution e on e.id = t.parent_id where e.strategy_id = $1 group by t.kind order by t.kind`,
    [id],
  )
  assert.deepEqual(
    tasks.filter(({ kind }) => kind === 'perp_open'),
    [{ kind: 'perp_open', count: '1' }],
    `${at}: one entry`,
  )
  const { rows: fills } = await app.admin.query<{ is_exit: boolean; size: string; ids: string[] }>(
    `select is_exit, trim_scale(sum(size))::text as size, array_agg(fill_id::text) as ids
     from strategy_fill where strategy_id = $1 group by is_exit order by is_exit`,
    [id],
  )
  assert.equal(fills.length, 2, `${at}: ${JSON.stringify(fills)}`)
  assert.equal(fills[0]!.size, fills[1]!.size, `${at}: it sold what it had bought`)
  const { rows: flat } = await app.admin.query<{ ms: string }>(
    `select extract(epoch from max(f.at)) * 1000 - (a.state #>> '{guards,tripped,atMs}')::bigint as ms
     from strategy_account a join strategy_fill f on f.strategy_id = a.strategy_id and f.is_exit
     where a.strategy_id = $1 group by a.state`,
    [id],
  )
  assert.ok(Number(flat[0]?.ms) <= flatMsMax, `${at}: flat ${flat[0]?.ms} ms after the guard has tripped`)
  const record = await recordOf(venue, user)
  const own = new Set(fills.flatMap(({ ids }) => ids))
  assert.equal(
    record.fills.filter(({ tid }) => own.has(String(tid))).length,
    own.size,
    `${at}: fills of the venue`,
  )
  assert.equal(traded(record.fills), 0n, `${at}: nothing else is open`)
  assert.deepEqual(
    record.orders.filter(({ status }) => status === 'open'),
    [],
    `${at}: no order is left`,
  )
}

/** Notes how far the strategy had come when its gateway died. */
async function notePhase(id: string): Promise<void> {
  const { rows } = await app.admin.query<{ type: string; is_over: boolean }>(
    `select execution_type as type, ended_at is not null as is_over from strategy_execution where strategy_id = $1`,
    [id],
  )
  const entry = rows.find(({ type }) => type === 'scheduled')
  const isExit = rows.some(({ type }) => type === 'exit')
  const phase = isExit ? 'exit' : entry?.is_over ? 'guard' : entry ? 'entry' : 'slot'
  deaths.set(phase, (deaths.get(phase) ?? 0) + 1)
}

async function enterAndExit(at: string, victim: Gateway, arm: () => void): Promise<boolean> {
  survivor.child.kill('SIGSTOP')
  arm()
  const id = await addDueStrategy()
  const isDead = () => victim.child.exitCode !== null || victim.child.signalCode !== null
  await eventually(
    async () => {
      const { exits } = await endsOf(id)
      return exits !== '0' || isDead() ? true : undefined
    },
    `${at}: the end of the exit or of the victim`,
    90_000,
  ).finally(() => survivor.child.kill('SIGCONT'))
  const died = victim.child.signalCode === 'SIGKILL'
  if (died) await notePhase(id)
  await assertOnce(id, at)
  return died
}

test('a live strategy whose gateway is killed at any point enters once and exits once', async (t) => {
  const reached = await killAtSample({
    suite: 'live strategies',
    max: isNightly ? 60 : pointsMax,
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'net:hyperliquid:after',
    launch: (failpoint) => app.gateway({ ...env, ...failpoint }),
    run: enterAndExit,
  })
  t.diagnostic(`${reached}: ${phases.map((phase) => `${phase} ${deaths.get(phase) ?? 0}`).join(', ')}`)
  // The exit often begins before the run of the entry has ended, so a sample may have no kill between the two.
  const met = isShort ? [] : phases.filter((phase) => phase !== 'guard' || isNightly)
  for (const phase of met) assert.ok(deaths.get(phase), `no kill in the phase ${phase}`)
  await eventually(
    async () => ((await ledgerDrift(app.admin)) === 0 ? true : undefined),
    'the ledger is even',
  )
  assert.deepEqual(await frozenAccounts(app.admin), [])
})
