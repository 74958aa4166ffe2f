/** 64 runs of one user at once, on two instances: they start what `chat_per_day_usd` allows, and nothing more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { query } from '#store/query.ts'
import { openChatApp } from '../../chat/chat-app.ts'
import { addSchedule, endOfRun, startRun } from '../../chat/schedule-fixture.ts'
import { http } from '../../harness/gateway.ts'
import { ledgerDrift } from '../../harness/ledger.ts'
import { ownWorld } from '../../harness/own-world.ts'

const base = '8453'
const runs = 64
const allowed = 5
const order = 'put 1 usdc into the vault'

test('64 runs of one user at once never exceed the limit of what chats start by themselves', async () => {
  await using world = await ownWorld([base])
  await using app = await openChatApp({
    answerer: 'product',
    urls: { evm: { [base]: world.urls.evm[base] } },
    env: { RATE_MONEY: '0' },
  })
  const [one, two] = app.instances
  const { db } = one!
  const user = await app.user()
  const { wallets } = await user.get<{ wallets: { address: string; chain_type: string }[] }>('/v1/wallets')
  const address = wallets.find(({ chain_type }) => chain_type === 'evm')!.address
  const funded = await http(`${world.urls.control}/faucet/fund`, {
    method: 'POST',
    body: { chain_id: base, address, token: 'USDC', amount: '100' },
  })
  assert.equal(funded.status, 200)
  const schedules = []
  for (let n = 0; n < runs; n++)
    schedules.push(
      await addSchedule(one!, user, { query: order, operations: ['earn_deposit'], notify: 'none' }),
    )
  const { userId } = schedules[0]!
  await query(
    db,
    `insert into policy (user_id, version, chat_per_day_micros, updated_at) values ($1, 1, $2, now())`,
    [userId, allowed * 1_000_000],
  )
  const ids = await Promise.all(schedules.map((schedule, n) => startRun(n % 2 ? one! : two!, schedule)))
  const ended = await Promise.all(ids.map((id) => endOfRun(one!, id, 240_000)))
  const executed = ended.filter(({ outcome }) => outcome === 'executed')
  assert.equal(executed.length, allowed, JSON.stringify(ended.map(({ outcome, error }) => [outcome, error])))
  for (const { status, outcome } of ended) {
    assert.notEqual(status, 'failed')
    assert.ok(outcome === 'executed' || outcome === 'not_executed')
  }
  const [counted] = await query<{ tasks: number; micros: string; children: number }>(
    db,
    `select count(*)::integer as tasks, sum(s.usd_micros)::text as micros,
       count(*) filter (where t.parent_id = any($2::uuid[]))::integer as children
     from task t join policy_spend s on s.task_id = t.id join policy_chat_spend c on c.task_id = t.id
     where t.user_id = $1 and t.kind = 'earn_deposit'`,
    [userId, ids],
  )
  assert.deepEqual(counted, { tasks: allowed, micros: `${allowed}000000`, children: allowed })
  for (const { spent_usd } of executed) assert.equal(Number(spent_usd), 1)
  assert.equal(await ledgerDrift(db), 0)
})
