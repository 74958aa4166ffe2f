/** Transfers of many users on Solana, whose nodes lag and abandon forks, on instances of which one is killed all the time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, type Gateway } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { createGatewayPool } from './gateway-pool.ts'
import { createSvmCrashApp, type Sender, send, sendUnits, type TaskBody } from './svm-app.ts'

const users = bySize({ short: 3, full: 8, nightly: 8 })
const sendsPerUser = bySize({ short: 4, full: 15, nightly: 40 })
/** So many gateways die whatever the speed of the machine is. */
const sendsPerKill = 2

/** As a client that wants its money moved once: repeats the same key until it gets an answer. */
async function submit(
  gateways: () => Gateway[],
  sender: Sender,
  { key, units }: { key: string; units: bigint },
): Promise<TaskBody> {
  const until = performance.now() + 120_000
  for (let turn = 0; performance.now() < until; turn++) {
    const ready = gateways()
    const gateway = ready[turn % Math.max(1, ready.length)]
    const answer =
      gateway && (await send(gateway.url, sender, key, { wait: false, units }).catch(() => undefined))
    if (answer?.status === 200) return answer.body
    const passing =
      answer === undefined || answer.status >= 500 || answer.status === 429 || answer.status === 409
    assert.ok(passing, `${key}: ${answer?.status} ${JSON.stringify(answer?.body)}`)
    await delay(50)
  }
  throw new Error(`${key} was never accepted`)
}

test(`${users * sendsPerUser} transfers survive nodes that lag and instances that are killed`, async (t) => {
  const app = await createSvmCrashApp()
  const pool = createGatewayPool(() => app.gateway({ FINALITY: 'public' }))
  t.after(async () => {
    await pool.close()
    await app[Symbol.asyncDispose]()
  })
  await pool.fillAll()
  const senders: Sender[] = []
  for (let n = 0; n < users; n++) senders.push(await app.newSender(pool.ready()[0]!.url))
  await app.usePreset('realistic', proofSeed('svm-kills'))
  const accepted: TaskBody[] = []
  await Promise.all(
    senders.map(async (sender, user) => {
      for (let n = 0; n < sendsPerUser; n++) {
        // Equal amounts of one wallet do not show which of them an expired transaction would have moved.
        const units = sendUnits + BigInt(n)
        accepted.push(await submit(pool.ready, sender, { key: `storm-${user}-${n}`, units }))
        if (accepted.length % sendsPerKill === 0) pool.killOne()
        await delay(500)
      }
    }),
  )
  await pool.fillAll()
  const open = async () =>
    (
      await app.admin.query(
        `select id, step, state from task where kind = 'svm_send' and completed_at is null`,
      )
    ).rows
  await eventually(
    async () => ((await open()).length === 0 ? true : undefined),
    'the end of all transfers',
    180_000,
  ).catch(async (cause: Error) => {
    throw new Error(`${cause.message}: ${JSON.stringify(await open())}`, { cause })
  })
  const { rows } = await app.admin.query<{ outcome: string; count: string; units: string }>(
    `select outcome, count(*), sum((input ->> 'units')::bigint) as units from task where kind = 'svm_send' group by outcome`,
  )
  const moved = rows.find(({ outcome }) => outcome === 'executed')
  const executed = BigInt(moved?.count ?? 0)
  assert.equal(
    rows.reduce((sum, { count }) => sum + Number(count), 0),
    accepted.length,
    JSON.stringify(rows),
  )
  t.diagnostic(`${accepted.length} accepted, ${executed} executed, ${pool.kills()} kills`)
  assert.ok(executed >= BigInt(accepted.length) - 2n, JSON.stringify(rows))
  // A node that lags does not show the last of them yet.
  await app.usePreset('quiet')
  assert.equal(await app.receivedUnits(), BigInt(moved?.units ?? 0))
  assert.equal(await ledgerDrift(app.admin), 0)
})
