/** kill -9 at the boundaries of the statements of an answer that starts an order: the order runs once, and is counted. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isEnd, readChat } from '../chat/read-chat.ts'
import { bearer, eventually, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import type { SentEvent } from '../harness/stream.ts'
import { isNightly } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, newCustomer } from './crash-app.ts'
import { keyAt, killAtEach, recordPoints } from './failpoints.ts'

const pointPattern = /^db:(task_accept|task_step|chat_append|select chat_call|policy_lock|select idempotency)/
const passesOf = (name: string) => (isNightly ? 50 : name.includes('chat_append') ? 8 : 2)
const query = 'put 1 usdc into the vault'

let app: CrashApp
let survivor: Gateway
let customer: Customer
let ordered = 0

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  customer = await newCustomer(survivor.url)
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

/** Room for one more order: after it nothing is left. */
const allowOneMore = () =>
  app.admin.query(
    `insert into policy (user_id, version, chat_per_day_micros, updated_at)
       select id, 1, $2::bigint, now() from app_user where agent_id = $1
     on conflict (user_id) do update set chat_per_day_micros = $2::bigint, version = policy.version + 1`,
    [customer.agentId, (ordered + 1) * 1_000_000],
  )

async function askThrough(victim: Gateway, key: string): Promise<SentEvent[]> {
  await allowOneMore()
  const got: SentEvent[] = []
  const read = async (url: string) => {
    const lastId = got.at(-1)?.id
    await readChat({
      url,
      query,
      headers: bearer(customer),
      key,
      ...(lastId !== undefined && { lastId }),
      until: (event) => {
        got.push(event)
        return isEnd(event)
      },
    })
  }
  await read(victim.url).catch(() => undefined)
  if (got.length === 0 || !isEnd(got.at(-1)!)) await read(survivor.url)
  return got
}

type Counted = { tasks: string; marks: string; micros: string; open: string }

/** One task more, which is marked and counted, named by the answer, and recommended by nothing. */
async function assertOrdered(events: SentEvent[], at: string): Promise<void> {
  ordered++
  const done = events.at(-1)!
  assert.deepEqual([done.event, (done.data as { status: string }).status], ['done', 'completed'], at)
  const text = (events.at(-2)!.data as { text: string }).text
  const { rows } = await app.admin.query<Counted & { newest: string }>(
    `select count(*) as tasks, count(c.task_id) as marks, sum(s.usd_micros) as micros, max(t.id::text) as newest,
       (select count(*) from chat_recommendation) as open
     from task t join policy_spend s on s.task_id = t.id left join policy_chat_spend c on c.task_id = t.id
     where t.kind = 'earn_deposit'`,
  )
  const { tasks, marks, micros, open, newest } = rows[0]!
  const each = String(ordered)
  assert.deepEqual([tasks, marks, micros, open], [each, each, `${each}000000`, '0'], `${at}: ${text}`)
  assert.ok(text.includes(newest), `${at}: ${text}`)
}

const pointsOfOneOrder = (): Promise<string[]> =>
  recordPoints({
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'db:task_accept:after@2',
    launch: app.gateway,
    work: async (recorded, attempt) => assertOrdered(await askThrough(recorded, attempt), attempt),
  })

/** The second acceptance is that of the order; the first one is that of the answer. */
const needed = [
  /^db:task_step/,
  /^db:task_accept:before@2/,
  /^db:task_accept:after@2/,
  /^db:chat_append:after@2/,
]

test('an order whose gateway is killed at any point is started once, and counts once', async (t) => {
  await assertOrdered(await askThrough(survivor, 'first'), 'first')
  const points = await pointsOfOneOrder()
  const reached = await killAtEach(points, app.gateway, async (point, victim) => {
    victim.child.kill('SIGUSR2')
    const events = await askThrough(victim, keyAt(point))
    const died = victim.child.signalCode === 'SIGKILL'
    await victim.kill()
    await assertOrdered(events, point)
    return died
  })
  t.diagnostic(`${reached}, ${ordered} orders`)
  await eventually(
    async () => {
      const { body } = await http<{ items: { status: string }[] }>(
        `${survivor.url}/v1/tasks?kind=earn_deposit&limit=100`,
        { headers: bearer(customer) },
      )
      return body.items.every(({ status }) => status === 'completed') ? true : undefined
    },
    'the deposits',
    60_000,
  )
  assert.equal((await app.vaultEffects(customer.address)).deposits, ordered)
  assert.equal(await ledgerDrift(app.admin), 0)
})
