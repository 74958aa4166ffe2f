/** Deposits and orders that are cancelled while they are signed, on two instances that are killed in turn. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { bearer, eventually, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { base, worldOf } from '../journeys/world.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import {
  type CrashApp,
  type Customer,
  createCrashApp,
  deposit,
  newCustomer,
  type TaskBody,
} from './crash-app.ts'
import { createGatewayPool, type GatewayPool } from './gateway-pool.ts'
import { newTrader } from './venue-points.ts'
import { cloidOf, executionsOf, frozenAccounts, recordOf, venueOf } from './venue-record.ts'
import { markets, randomOf } from './venue-traders.ts'

const usersOfAKind = bySize({ short: 2, full: 3, nightly: 10 })
const tasksPerUser = bySize({ short: 6, full: 8, nightly: 20 })
const killEveryMs = bySize({ short: 1_000, full: 6_000, nightly: 4_000 })
const cancelWithinMs = 45
/** Admissions that read this slowly are too old to sign with: their tasks are signed by a step, which a cancel can precede. */
const slowAdmission = { latency_ms: 3_100, methods: ['eth_getCode'], rate: 0.5 }
const endsWithinMs = 60_000
/** An order of which the venue shows nothing has ended without effect only after its expiry, the lag of reads and a second look. */
const absentWithinMs = 60_000
const cancelsAtOnce = 120
const setupWithinMs = 120_000

type Cancel = { taskId: string; status: number | undefined }
type Attempt = { key: string; path: string; body: object; cancelAfterMs: number; pick: () => number }

const deposits = { path: 'earn/deposit', body: (_n: number) => ({ amount_usdc: 1 }) }
const orders = {
  path: 'perp/open',
  body: (n: number) => ({ asset: 'BTC', side: 'long', notional_usd: '15', leverage: 3 + (n % 3) }),
}

/** Repeats under one key until an instance accepts, then cancels on any instance. */
async function acceptAndCancel(
  gateways: () => Gateway[],
  customer: Customer,
  { key, path, body, cancelAfterMs, pick }: Attempt,
): Promise<Cancel> {
  const any = () => {
    const ready = gateways()
    return ready[Math.floor(pick() * ready.length)]
  }
  const headers = bearer(customer)
  const accepted = await eventually(
    async () => {
      const gateway = any()
      const answer =
        gateway &&
        (await http<TaskBody>(`${gateway.url}/v1/${path}`, {
          method: 'POST',
          headers: { ...headers, 'idempotency-key': key },
          body,
          timeoutMs: 25_000,
        }).catch(() => undefined))
      const passing = answer === undefined || answer.status >= 500 || answer.status === 429
      assert.ok(passing || answer.status === 200, `${key}: ${answer?.status} ${JSON.stringify(answer?.body)}`)
      return passing ? undefined : answer.body
    },
    `${key} is accepted`,
    120_000,
  )
  const cancelAtMs = performance.now() + cancelAfterMs
  while (performance.now() < cancelAtMs) await delay(1)
  const reply = await http(`${any()?.url}/v1/tasks/${accepted.task_id}/cancel`, {
    method: 'POST',
    headers,
    timeoutMs: 25_000,
  }).catch(() => undefined)
  return { taskId: accepted.task_id, status: reply?.status }
}

let app: CrashApp
let gatewayPool: GatewayPool
before(async () => {
  app = await createCrashApp()
  gatewayPool = createGatewayPool(() => app.gateway({ POLICY_DAY_USD_MAX: '100000000' }))
  await gatewayPool.fillAll()
})
after(async () => {
  await gatewayPool?.close()
  await app?.[Symbol.asyncDispose]()
})

test('a cancel that races a signature is rejected or moves nothing, and every task ends', async (t) => {
  const venue = venueOf(app.control)
  await venue('POST', '/settings', { walking: false })
  for (const [coin, price] of Object.entries(markets)) await venue('POST', '/price', { coin, price })
  const { url } = gatewayPool.ready()[0]!
  const savers: Customer[] = []
  const traders: Customer[] = []
  for (let n = 0; n < usersOfAKind; n++) {
    savers.push(await newCustomer(url))
    const trader = await newTrader({ url }, venue)
    const setUp = async () => {
      const { status, body } = await http<TaskBody>(`${url}/v1/perp/setup?wait=true`, {
        method: 'POST',
        headers: { ...bearer(trader), 'idempotency-key': 'setup' },
        body: {},
      })
      return status >= 500 || body.outcome === null ? undefined : body
    }
    const setup = await eventually(setUp, 'the end of the set-up', setupWithinMs)
    assert.equal(setup.outcome, 'executed', JSON.stringify(setup))
    traders.push(trader)
  }

  const seed = proofSeed('cancels')
  const random = randomOf(seed)
  const world = await worldOf(app.control)
  await world.fault(`evm:${base}`, { ...slowAdmission, seed })
  const startedMs = performance.now()
  let busy = true
  const racing = Promise.all(
    [...savers, ...traders].map(async (customer) => {
      const { path, body } = savers.includes(customer) ? deposits : orders
      const cancels: Cancel[] = []
      for (let n = 0; n < tasksPerUser; n++)
        cancels.push(
          await acceptAndCancel(gatewayPool.ready, customer, {
            key: `race-${n}`,
            path,
            body: body(n),
            cancelAfterMs: random() * cancelWithinMs,
            pick: random,
          }),
        )
      return { customer, cancels }
    }),
  ).finally(() => {
    busy = false
  })
  racing.catch(() => undefined)
  let lastKillMs = performance.now()
  while (busy) {
    await Promise.race([racing.catch(() => undefined), delay(100, undefined, { ref: false })])
    // On a busy machine a start takes longer than the pause between two kills; one instance always runs.
    if (!busy || gatewayPool.ready().length < 2 || performance.now() - lastKillMs < killEveryMs) continue
    gatewayPool.killOne()
    lastKillMs = performance.now()
  }
  const raced = await racing
  await world.heal()
  await gatewayPool.fillAll()
  const open = async () =>
    (
      await app.admin.query<{ id: string; kind: string; state: string; cancel_requested: boolean }>(
        `select id, kind, state, cancel_requested from task where kind in ('earn_deposit', 'perp_open')
           and status in ('pending', 'running')`,
      )
    ).rows
  const expiresInMs = async () =>
    (
      await app.admin.query<{ ms: string | null }>(
        `select extract(epoch from max(e.valid_until) - clock_timestamp()) * 1000 as ms
         from effect e join task t on t.id = e.task_id
         where t.kind = 'perp_open' and t.status in ('pending', 'running')`,
      )
    ).rows[0]?.ms
  const lastExpiryMs = await expiresInMs()
  await eventually(
    async () => ((await open()).length === 0 ? true : undefined),
    'every task has ended',
    lastExpiryMs == null ? endsWithinMs : Math.max(endsWithinMs, Number(lastExpiryMs) + absentWithinMs),
  ).catch(async (error: unknown) => {
    throw new Error(`still open: ${JSON.stringify(await open())}`, { cause: error })
  })
  const settledMs = Math.round(performance.now() - lastKillMs)

  const tally = { accepted: 0, refused: 0, unanswered: 0, executed: 0 }
  for (const { customer, cancels } of raced) {
    const { rows } = await app.admin.query<{ id: string; status: string; outcome: string; state: string }>(
      `select t.id, t.status, t.outcome, t.state from task t join app_user u on u.id = t.user_id
       where u.agent_id = $1 and t.kind in ('earn_deposit', 'perp_open')`,
      [customer.agentId],
    )
    assert.equal(rows.length, tasksPerUser)
    for (const { taskId, status } of cancels) {
      const ended = rows.find(({ id }) => id === taskId)
      const at = `${taskId}: cancel answered ${status}, the task ended ${JSON.stringify(ended)}`
      assert.ok(status === undefined || status === 200 || status === 409, at)
      if (status === 200) assert.deepEqual([ended?.status, ended?.outcome], ['cancelled', 'not_executed'], at)
      // A signed effect may expire on a busy machine before the venue or the chain has it.
      const hasExpired = ended?.state === 'expired' && ended.outcome === 'not_executed'
      if (status === 409) assert.ok(ended?.status === 'completed' || hasExpired, at)
      tally[status === 200 ? 'accepted' : status === 409 ? 'refused' : 'unanswered'] += 1
    }
    const executed = rows.filter(({ outcome }) => outcome === 'executed')
    tally.executed += executed.length
    if (savers.includes(customer)) {
      const { deposits: landed } = await app.vaultEffects(customer.address)
      assert.equal(landed, executed.length, `${customer.address}: deposits on the chain`)
    } else {
      const record = await recordOf(venue, customer)
      const landed = record.orders.map(({ cloid }) => cloid).sort()
      const executions = await executionsOf(
        app.admin,
        executed.map(({ id }) => id),
      )
      assert.deepEqual(landed, executions.map((id) => cloidOf(id, 'entry')).sort())
    }
  }
  t.diagnostic(
    `${JSON.stringify(tally)}; ${gatewayPool.kills()} kills; ${Math.round(lastKillMs - startedMs)} ms of racing; all ended ${settledMs} ms after the last kill`,
  )
  // Most tasks sign with their acceptance, so that a few of them may leave no time for a cancel.
  const acceptedMin = bySize({ short: 0, full: 1, nightly: 1 })
  assert.ok(tally.accepted >= acceptedMin && tally.executed > 0, JSON.stringify(tally))
  assert.equal(await ledgerDrift(app.admin), 0)
  assert.deepEqual(await frozenAccounts(app.admin), [])
})

test('cancels of one user that wait for a row delay no other user', async () => {
  await gatewayPool.fillAll()
  const gateway = gatewayPool.ready()[0]!
  const tasks = await Promise.all(
    Array.from({ length: 2 * usersOfAKind }, async () => {
      const customer = await newCustomer(gateway.url)
      const { status, body } = await deposit(gateway.url, customer, 'deposit', true)
      assert.equal(status, 200, JSON.stringify(body))
      return { customer, taskId: body.task_id }
    }),
  )
  const cancel = async (customer: Customer, taskId: string, key?: string): Promise<number> => {
    const { status } = await http(`${gateway.url}/v1/tasks/${taskId}/cancel`, {
      method: 'POST',
      headers: { ...bearer(customer), ...(key !== undefined && { 'idempotency-key': key }) },
    })
    return status
  }
  const answers = await Promise.all(
    Array.from({ length: cancelsAtOnce }, (_, n) => {
      const { customer, taskId } = tasks[n % tasks.length]!
      return cancel(customer, taskId, n % 2 === 0 ? `cancel-${n}` : undefined)
    }),
  )

  // Cancels of one user, however many, wait for its rows on one connection.
  const [blocked, ...others] = tasks
  const keys = Array.from({ length: cancelsAtOnce }, (_, n) => `blocked-${n}`)
  let blockedAnswers = 0
  const holder = await app.admin.connect()
  let waiting: Promise<number[]>
  try {
    await holder.query('begin')
    await holder.query(
      `insert into idempotency (user_id, key, operation, body_hash, at)
       select id, unnest($2::text[]), 'held by the test', '', now() from app_user where agent_id = $1`,
      [blocked!.customer.agentId, keys],
    )
    waiting = Promise.all(
      keys.map(async (key) => {
        const status = await cancel(blocked!.customer, blocked!.taskId, key)
        blockedAnswers++
        return status
      }),
    )
    waiting.catch(() => undefined)
    const waits = async () =>
      (
        await app.admin.query(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).rows.length > 0
    await eventually(async () => (await waits()) || undefined, 'a cancel that waits for a row', endsWithinMs)
    for (const { customer, taskId } of others) answers.push(await cancel(customer, taskId))
    assert.equal(blockedAnswers, 0, 'the others were answered before')
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  answers.push(...(await waiting))
  assert.deepEqual(
    answers.filter((status) => status !== 200 && status !== 409),
    [],
  )
})
