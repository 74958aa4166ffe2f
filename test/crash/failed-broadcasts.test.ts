/** The node of a chain takes no transactions for a while: once it does, instances that nobody calls send all of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, type Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { worldOf } from '../journeys/world.ts'
import { bySize } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, deposit, newCustomer } from './crash-app.ts'

const base = '8453'
const users = bySize({ short: 8, full: 12, nightly: 12 })
const transactions = bySize({ short: 48, full: 291, nightly: 291 })
/** Requests at a time. */
const parallel = 12
/** Half the time after which each counter is compared in any case, whether broadcasts fail or not. */
const quickMsMax = 30_000

/** Per sponsor, how far the counter of its nonces is ahead of the chain. */
async function driftOf(app: CrashApp): Promise<number> {
  const { rows } = await app.admin.query<{ signer: string; next: string }>(
    'select signer, next from nonce_sequence where chain = $1',
    [base],
  )
  const drifts = await Promise.all(
    rows.map(async ({ signer, next }) => Math.abs(Number(next) - (await app.sponsorNonce(signer)))),
  )
  return drifts.reduce((sum, drift) => sum + drift, 0)
}

/** Broadcasts have requests of their own, so that their failures refuse no deposit. */
async function accepted(url: string, customer: Customer, key: string): Promise<string> {
  const { status, body } = await deposit(url, customer, key, false)
  assert.equal(status, 200, `${key}: ${JSON.stringify(body)}`)
  return body.task_id
}

test(`${transactions} transactions whose broadcasts failed are mined once each when the node recovers`, async (t) => {
  const app = await createCrashApp()
  const gateways: Gateway[] = []
  t.after(async () => {
    for (const gateway of gateways) await gateway.stop()
    await app[Symbol.asyncDispose]()
  })
  for (let n = 0; n < 3; n++) gateways.push(await app.gateway({ SPONSOR_USER_DAY: '1' }))
  const customers = await Promise.all(
    Array.from({ length: users }, (_, n) => newCustomer(gateways[n % gateways.length]!.url)),
  )
  const world = await worldOf(app.control)
  await world.fault(`evm:${base}`, { status: 503, methods: ['eth_sendRawTransaction'] })

  const ids: string[] = []
  const numbers = Array.from({ length: transactions }, (_, n) => n).values()
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (const n of numbers) {
        const { url } = gateways[n % gateways.length]!
        ids.push(await accepted(url, customers[n % users]!, `deposit-${n}`))
      }
    }),
  )
  const stored = async () => {
    const { rows } = await app.admin.query<{ nonces: number; attempts: number }>(
      `select count(*)::int as attempts, count(distinct (signer, nonce))::int as nonces from tx_attempt where chain = $1`,
      [base],
    )
    return rows[0]!
  }
  await eventually(async () => (await stored()).nonces >= transactions || undefined, 'all are signed', 60_000)
  const drifted = await driftOf(app)
  assert.equal(drifted, transactions)

  // One instance is killed while the node fails, a second one at its recovery.
  await gateways[0]!.kill()
  // The node takes transactions again, and the world counts the requests that bring them.
  await world.fault(`evm:${base}`, { latency_ms: 1, methods: ['eth_sendRawTransaction'] })
  const healedMs = performance.now()
  void gateways[1]!.kill()
  const seen: string[] = []
  await eventually(
    async () => {
      const drift = await driftOf(app)
      seen.push(`${Math.round(performance.now() - healedMs)} ms: ${drift}`)
      return drift === 0 ? true : undefined
    },
    'nonces without drift',
    quickMsMax,
  )
  const tookMs = Math.round(performance.now() - healedMs)
  const requests = await world.faultHits(`evm:${base}`)
  assert.ok(requests < transactions, `${requests} requests; drift after ${seen.join(', ')}`)

  const openTasks = async () => {
    const { rows } = await app.admin.query(
      `select 1 from task where kind = 'earn_deposit' and status in ('pending', 'running')`,
    )
    return rows.length
  }
  await eventually(async () => ((await openTasks()) === 0 ? true : undefined), 'all tasks end', 60_000)
  const endedMs = Math.round(performance.now() - healedMs)
  t.diagnostic(
    `${transactions} transactions of ${users} users: no drift ${tookMs} ms and ${requests} requests after the recovery, all tasks ended after ${endedMs} ms`,
  )

  const { rows } = await app.admin.query<{ status: string; outcome: string; count: string }>(
    `select status, outcome, count(*) from task where id = any($1::uuid[]) group by status, outcome`,
    [ids.map((id) => id.replace(/^task_/, ''))],
  )
  assert.deepEqual(rows, [{ status: 'completed', outcome: 'executed', count: String(transactions) }])
  const effects = await Promise.all(customers.map(({ address }) => app.vaultEffects(address)))
  assert.equal(
    effects.reduce((sum, { deposits }) => sum + deposits, 0),
    transactions,
  )
  assert.deepEqual(await stored(), { nonces: transactions, attempts: transactions })
  assert.equal(await driftOf(app), 0)
  assert.equal(await ledgerDrift(app.admin), 0)
})
