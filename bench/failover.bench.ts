/**
 * P15: from SIGKILL until all tasks that the dead instance had leased are claimed again: by another instance, and by a
 * new start of itself.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import {
  type Agent,
  bearer,
  eventually,
  type Gateway,
  http,
  launch,
  newAgent,
} from '../test/harness/gateway.ts'
import { createEnvironment, unlimited } from './support/environment.ts'
import { median, report } from './support/measure.ts'

const runs = 5
const users = 24
const leaseMs = 2_000
const heldTasksMin = 6

await using environment = await createEnvironment()
const url = await environment.newDatabase('failover')
const env = {
  ...(await environment.world()),
  ...unlimited,
  DATABASE_URL: url,
  LEASE_MS: String(leaseMs),
}
const pool = new pg.Pool({ connectionString: url, max: 4 })
await using _closing = { [Symbol.asyncDispose]: () => pool.end() }
pool.on('error', () => {})
const start = (name: string) =>
  launch({ env: { ...env, DATA_DIR: environment.newFolder(name) }, readyMsMax: 60_000 })

let first = await start('first')
const second = await start('second')
await using _instances = {
  async [Symbol.asyncDispose]() {
    await Promise.all([first.kill(), second.kill()])
  },
}

type HeldTask = { id: string; owner: string; version: number }
const waitUntilIdle = () =>
  eventually(
    async () => {
      const { rows } = await pool.query(
        `select count(*)::int as open from task where status in ('pending', 'running')`,
      )
      return rows[0].open === 0 ? true : undefined
    },
    'every task has ended',
    60_000,
  )
const ownersOf = async (instances: number): Promise<string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    'select id from instance order by lease_until desc limit $1',
    [instances],
  )
  return rows.map(({ id }) => id)
}

/** Sends deposits to one instance without waiting for them, until it is killed. */
function flood(at: Gateway, agents: Agent[]): { stop(): Promise<void> } {
  let going = true
  const workers = agents.map(async (agent) => {
    while (going) {
      await http(`${at.url}/v1/earn/deposit`, {
        method: 'POST',
        headers: bearer(agent),
        body: { amount_usdc: '1' },
        timeoutMs: 5_000,
      }).catch(() => delay(20))
    }
  })
  return {
    async stop() {
      going = false
      await Promise.all(workers)
    },
  }
}

const heldBy = async (owners: readonly string[]): Promise<HeldTask[]> =>
  (
    await pool.query<HeldTask>(
      `select id, owner, version from task_queue join task on id = task_id where owner = any($1)`,
      [owners],
    )
  ).rows
const countUnmoved = async (held: HeldTask[]): Promise<number> => {
  const { rows } = await pool.query<{ id: string; version: number }>(
    'select id, version from task_queue join task on id = task_id where task_id = any($1)',
    [held.map(({ id }) => id)],
  )
  const now = new Map(rows.map(({ id, version }) => [id, version]))
  return held.filter(({ id, version }) => now.get(id) === version).length
}

/** Kills under load, runs `then`, and returns how long the orphaned tasks were idle. */
async function measureKill(
  victim: Gateway,
  owner: string,
  agents: Agent[],
  then: () => Promise<void>,
): Promise<{ ms: number; orphans: number }> {
  const load = flood(victim, agents)
  const busy = async () => ((await heldBy([owner])).length >= heldTasksMin ? true : undefined)
  await eventually(busy, 'the instance has leased tasks', 30_000)
  const diedMs = performance.now()
  await victim.kill()
  const held = await heldBy([owner])
  const after = Promise.all([then(), load.stop()])
  await eventually(
    async () => ((await countUnmoved(held)) === 0 ? true : undefined),
    'the orphaned tasks are claimed',
    60_000,
  )
  const ms = performance.now() - diedMs
  await after
  return { ms, orphans: held.length }
}

const agents: Agent[] = []
for (let at = 0; at < users; at += 8)
  agents.push(...(await Promise.all(Array.from({ length: 8 }, () => newAgent(first.url)))))
await waitUntilIdle()

/** The lease owner id of an instance is the heartbeat of a new start: the one that did not exist before. */
const restarted = async (name: string): Promise<{ gateway: Gateway; owner: string }> => {
  const before = new Set(await ownersOf(1_000))
  const gateway = await start(name)
  const owner = await eventually(
    async () => (await ownersOf(1_000)).find((id) => !before.has(id)),
    'the instance shows a heartbeat',
  )
  return { gateway, owner }
}

const survivor: { ms: number; orphans: number }[] = []
for (let run = 0; run < runs; run++) {
  await first.kill()
  const fresh = await restarted('first')
  first = fresh.gateway
  survivor.push(await measureKill(first, fresh.owner, agents, async () => {}))
  await waitUntilIdle()
}
await second.stop()
const alone: { ms: number; orphans: number }[] = []
for (let run = 0; run < runs; run++) {
  await first.kill()
  const fresh = await restarted('first')
  first = fresh.gateway
  alone.push(
    await measureKill(first, fresh.owner, agents, async () => {
      first = await start('first')
    }),
  )
  await waitUntilIdle()
}

const summarize = (found: { ms: number; orphans: number }[]) => ({
  milliseconds: median(found.map(({ ms }) => ms)),
  tasks_in_hand: median(found.map(({ orphans }) => orphans)),
})
report({
  id: 'P15',
  name: 'SIGKILL of one of two: all its tasks are claimed by the other, in leases of 2 s',
  goal: '<= 1.5 (lease + 1 s)',
  ratios: survivor.map(({ ms }) => ms / leaseMs),
  met: (value) => value <= 1.5,
  annex: summarize(survivor),
})
report({
  id: 'P15a',
  name: 'SIGKILL of the only one: all its tasks are claimed by the next start, in leases of 2 s',
  goal: '<= 1.75 (lease + 1.5 s)',
  ratios: alone.map(({ ms }) => ms / leaseMs),
  met: (value) => value <= 1.75,
  annex: summarize(alone),
})
