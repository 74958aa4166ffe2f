/** kill -9 at the boundaries of the statements of an answer of a model that starts an order: another gateway goes on. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isEnd, readChat } from '../chat/read-chat.ts'
import { bearer, eventually, type Gateway, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { text, tools } from '../harness/model-world.ts'
import type { SentEvent } from '../harness/stream.ts'
import { isNightly } from '../proof/support/seed.ts'
import { type CrashApp, type Customer, createCrashApp, newCustomer } from './crash-app.ts'
import { keyAt, killAtEach, recordPoints } from './failpoints.ts'

const pointPattern =
  /^(db:(task_accept|task_step|chat_append|select chat_call|policy_lock|select idempotency)|net:model)/
/** Notes are appended between the events. */
const passesOf = (name: string) =>
  name.includes('chat_append') ? 12 : isNightly ? 4 : name.startsWith('net:') ? 3 : 2
const query = 'put 1 usdc into the vault'
const words = 'That is what you asked for. It needs a moment. Ask me about it later.'
/** A step costs one credit, so that a step that is counted twice is seen. */
const usage = { type: 'usage', input: 10_000, output: 666 }
const prices = { MODEL_PRICE_IN: '1', MODEL_PRICE_OUT: '10' }
const steps = [
  [text('Let me look.'), tools([{ name: 'chains_list', arguments: {} }]), usage],
  [tools([{ name: 'earn_deposit', arguments: { amount_usdc: '1' } }]), usage],
  [text(words, { piece: 8, pace_ms: 5 }), usage],
]
/** The gateway adds what it has started. */
const started =
  'It was started at once, within what chats may start by themselves.\nDeposit 1 USDC into the vault\n- Deposit: 1 USDC'
const answer = `Let me look.\n\n${words}\n\n${started}`

let app: CrashApp
let survivor: Gateway
let customer: Customer
let env: Record<string, string>
let ordered = 0

before(async () => {
  app = await createCrashApp()
  env = { ...prices, MODEL_URL: app.modelUrl, MODEL_NAME: 'local' }
  await control('PUT', 'scripts', { name: 'order', contains: query, turns: steps })
  survivor = await app.gateway(env)
  customer = await newCustomer(survivor.url)
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

async function control<B>(method: string, path: string, body?: unknown): Promise<B> {
  const reply = await http<B>(`${app.control}/model/${path}`, { method, ...(body !== undefined && { body }) })
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  return reply.body
}

/** How often each step was asked for. */
async function askedSteps(): Promise<number[]> {
  type Recorded = { requests: { body: { messages: { role: string; tool_calls?: object[] }[] } }[] }
  const { requests } = await control<Recorded>('GET', 'requests')
  const counts = steps.map(() => 0)
  for (const { body } of requests) {
    const lastUser = body.messages.findLastIndex(({ role }) => role === 'user')
    // A text that the answer continues is no step.
    const step = body.messages.slice(lastUser).filter(({ tool_calls }) => tool_calls).length
    counts[step]! += 1
  }
  return counts
}

const notedSteps = async (): Promise<number[]> => {
  const { rows } = await app.admin.query<{ call_id: string }>(
    `select call_id from chat_call where call_id like 'note:turn:%'`,
  )
  return rows.map(({ call_id }) => Number(call_id.split(':')[2]) - 1)
}

type Answered = { events: SentEvent[]; noted: number[]; askedBefore: number[] }

async function askThrough(victim: Gateway, key: string): Promise<Answered> {
  await control('DELETE', 'requests')
  // Room for one more order: after it nothing is left.
  await app.admin.query(
    `insert into policy (user_id, version, chat_per_day_micros, updated_at)
       select id, 1, $2::bigint, now() from app_user where agent_id = $1
     on conflict (user_id) do update set chat_per_day_micros = $2::bigint, version = policy.version + 1`,
    [customer.agentId, (ordered + 1) * 1_000_000],
  )
  const events: SentEvent[] = []
  const read = async (url: string) => {
    const lastId = events.at(-1)?.id
    await readChat({
      url,
      query,
      headers: bearer(customer),
      key,
      ...(lastId !== undefined && { lastId }),
      until: (event) => {
        events.push(event)
        return isEnd(event)
      },
    })
  }
  await read(victim.url).catch(() => undefined)
  const hasEnded = events.length > 0 && isEnd(events.at(-1)!)
  // Notes before requests: what is noted is asked for by nobody from then on.
  const noted = hasEnded ? [] : await notedSteps()
  const askedBefore = await askedSteps()
  if (!hasEnded) await read(survivor.url)
  return { events, noted, askedBefore }
}

type Counted = { tasks: string; marks: string; recommended: string; newest: string }

async function assertAnswered({ events, noted, askedBefore }: Answered, at: string): Promise<void> {
  ordered++
  const chatId = events[0]?.id?.split(':')[0]
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, index) => `${chatId}:${index + 1}`),
    `${at}: no gap and nothing twice`,
  )
  assert.equal(events.filter(isEnd).length, 1, at)
  const done = events.at(-1)!.data as { status: string; credits_used: number; credits_remaining: number }
  assert.equal((events.at(-2)!.data as { text: string }).text, answer, at)
  assert.deepEqual(
    [done.status, done.credits_used, done.credits_remaining],
    ['completed', 3, 200 - 3 * ordered],
    at,
  )
  const asked = await askedSteps()
  for (const step of noted) assert.equal(asked[step], askedBefore[step], `${at}: step ${step} was noted`)
  assert.ok(
    asked.every((count) => count === 1 || count === 2),
    `${at}: ${asked}`,
  )
  // One gateway was killed, so one step at most was under way.
  assert.ok(asked.filter((count) => count > 1).length <= 1, `${at}: ${asked}`)
  const { rows } = await app.admin.query<Counted>(
    `select count(*) as tasks, count(c.task_id) as marks, max(t.id::text) as newest,
       (select count(*) from chat_recommendation) as recommended
     from task t left join policy_chat_spend c on c.task_id = t.id where t.kind = 'earn_deposit'`,
  )
  const { tasks, marks, recommended, newest } = rows[0]!
  assert.deepEqual([tasks, marks, recommended], [String(ordered), String(ordered), '0'], at)
  const responses = events.filter(({ event }) => event === 'tool_response')
  assert.equal(responses.length, 2, at)
  assert.ok(JSON.stringify(responses.at(-1)!.data).includes(newest), at)
}

const launch = (more: Record<string, string>) => app.gateway({ ...env, ...more })
const pointsOfOneAnswer = (): Promise<string[]> =>
  recordPoints({
    pattern: pointPattern,
    passesOf,
    needed,
    shortPoint: 'net:model:after@3',
    launch,
    work: async (recorded, attempt) => assertAnswered(await askThrough(recorded, attempt), attempt),
  })

/** The second acceptance is that of the order. How many appends there are depends on what collects meanwhile. */
const needed = [/^db:task_accept:after@2/, /^net:model:after@3/, /^db:chat_append:before@4/]

test('an answer of a model whose gateway is killed at any point goes on: no step and no order comes twice', async (t) => {
  await assertAnswered(await askThrough(survivor, 'first'), 'first')
  const points = await pointsOfOneAnswer()
  const reached = await killAtEach(points, launch, async (point, victim) => {
    victim.child.kill('SIGUSR2')
    const answered = await askThrough(victim, keyAt(point))
    const died = victim.child.signalCode === 'SIGKILL'
    await victim.kill()
    await assertAnswered(answered, point)
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
