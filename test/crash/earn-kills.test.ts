/** Money tasks of many users on two instances, of which one is killed every 300 ms. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { bearer, eventually, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { bySize } from '../proof/support/seed.ts'
import { type Customer, createCrashApp, deposit, newCustomer, type TaskBody } from './crash-app.ts'
import { createGatewayPool } from './gateway-pool.ts'

const users = bySize({ short: 4, full: 10, nightly: 10 })
const depositsPerUser = bySize({ short: 5, full: 20, nightly: 20 })
const stormMs = bySize({ short: 8_000, full: 60_000, nightly: 60_000 })
const killsMin = bySize({ short: 3, full: 10, nightly: 10 })
const killEveryMs = 300
const settleMs = 60_000

/** As a client that wants its money moved once: repeats the same key until it gets an outcome. */
async function submitUntilAnswered(
  gateways: () => Gateway[],
  customer: Customer,
  key: string,
  until: number,
): Promise<TaskBody> {
  for (let turn = 0; performance.now() < until; turn++) {
    const ready = gateways()
    const gateway = ready[turn % Math.max(1, ready.length)]
    const answer = gateway && (await deposit(gateway.url, customer, key, false).catch(() => undefined))
    if (answer?.status === 200) return answer.body
    const passing = answer === undefined || answer.status >= 500 || answer.status === 429
    assert.ok(passing, `${key}: ${answer?.status} ${JSON.stringify(answer?.body)}`)
    await delay(20)
  }
  throw new Error(`${key} was never accepted`)
}

test(`${users * depositsPerUser} earn tasks survive ${stormMs / 1_000} s in which an instance is killed every 300 ms`, async (t) => {
  const app = await createCrashApp()
  const gatewayPool = createGatewayPool(() => app.gateway())
  t.after(async () => {
    await gatewayPool.close()
    await app[Symbol.asyncDispose]()
  })
  await gatewayPool.fillAll()
  const customers: Customer[] = []
  for (let n = 0; n < users; n++) customers.push(await newCustomer(gatewayPool.ready()[0]!.url))

  const ends = performance.now() + stormMs
  const accepting = customers.map(async (customer, user) => {
    const tasks: TaskBody[] = []
    // Spread over the whole duration, so that every kill interrupts tasks.
    for (let n = 0; n < depositsPerUser; n++) {
      tasks.push(await submitUntilAnswered(gatewayPool.ready, customer, `storm-${user}-${n}`, ends + 60_000))
      await delay(Math.max(0, (stormMs / depositsPerUser) * (n + 1) - (performance.now() - (ends - stormMs))))
    }
    return tasks
  })
  // On a busy machine a start takes longer than the pause between two kills.
  while (performance.now() < ends || (gatewayPool.kills() < killsMin && performance.now() < ends + 60_000)) {
    gatewayPool.killOne()
    await delay(killEveryMs)
  }
  const kills = gatewayPool.kills()
  const lastKill = performance.now()
  await gatewayPool.fillAll()
  const accepted = (await Promise.all(accepting)).flat()
  const open = async () => {
    const { rows } = await app.admin.query(
      `select id, step, state from task where kind = 'earn_deposit' and status in ('pending', 'running')`,
    )
    return rows
  }
  await eventually(
    async () => ((await open()).length === 0 ? true : undefined),
    'all tasks have ended',
    Math.max(1_000, lastKill + settleMs - performance.now()),
  )
  const settledMs = Math.round(performance.now() - lastKill)

  assert.equal(new Set(accepted.map(({ task_id }) => task_id)).size, users * depositsPerUser)
  const tally = { completed: 0, effects: 0 }
  for (const customer of customers) {
    const { deposits, shares } = await app.vaultEffects(customer.address)
    const { url } = gatewayPool.ready()[0]!
    const { body } = await http<{ items: TaskBody[] }>(`${url}/v1/tasks?kind=earn_deposit&limit=100`, {
      headers: bearer(customer),
    })
    const completed = body.items.filter(
      ({ status, outcome }) => status === 'completed' && outcome === 'executed',
    ).length
    assert.equal(deposits, completed, `${customer.address}: deposits on the chain and completed tasks`)
    const { rows } = await app.admin.query(
      `select coalesce(sum(avail + held), 0)::text as shares from account a join app_user u on u.id = a.owner where u.agent_id = $1 and a.sub_account like 'position:%'`,
      [customer.agentId],
    )
    assert.equal(String(shares), rows[0].shares, `${customer.address}: shares on the chain and in the ledger`)
    tally.completed += completed
    tally.effects += deposits
  }
  t.diagnostic(
    `${kills} kills; ${tally.completed} tasks completed, ${tally.effects} deposits on the chain; all ended ${settledMs} ms after the last kill`,
  )
  assert.equal(tally.completed, users * depositsPerUser)
  assert.ok(kills >= killsMin, `only ${kills} kills`)
  assert.equal(await ledgerDrift(app.admin), 0)
})
