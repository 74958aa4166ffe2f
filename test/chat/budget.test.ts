/** What a chat starts by itself: orders of the message alone, within the user's limit for chats. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Overrides } from '#compose/compose.ts'
import { callHash } from '#features/chat/call-identity.ts'
import type { Answerer, ToolCall } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { ownWorld } from '../harness/own-world.ts'
import type { SentEvent } from '../harness/stream.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { fundOperation } from './fund-operation.ts'

type World = Awaited<ReturnType<typeof ownWorld>>
type Task = { task_id: string; status: string }
type Output = {
  task_id?: string
  recommendation_id?: string
  reason?: string
  code?: string
  started?: object
}
type Policy = { chat_per_day_usd: string; chat_remaining_24h_usd: string; spent_24h_usd: string }
type Customer = ChatUser & { id: string }

const base = '8453'
const order = 'put 1 usdc into the vault'
const deposit = (amount: string, id = 'a'): ToolCall => ({
  id,
  name: 'earn_deposit',
  input: { amount_usdc: amount },
})

/** Calls what a test has set for the words of the message, whatever they say. */
function hostileAnswerer() {
  const calls = new Map<string, { all: ToolCall[]; together?: boolean; memory?: JsonObject }>()
  const answerer: Answerer = {
    async run({ query, memory }, tools) {
      const { all = [], together = false, memory: next } = calls.get(query) ?? {}
      if (together) await Promise.all(all.map((call) => tools.call(call)))
      else for (const call of all) await tools.call(call)
      return { stopReason: 'end', citations: [], memory: next ?? memory }
    },
  }
  return { answerer, calls }
}

describe('the budget of chats', () => {
  const { answerer, calls } = hostileAnswerer()
  let world: World
  let app: ChatApp
  let hostile: ChatApp
  before(async () => {
    world = await ownWorld([base])
    const urls = { evm: { [base]: world.urls.evm[base] } }
    app = await openChatApp({ answerer: 'product', urls })
    const addOperations: Overrides['addOperations'] = ({ custody }) => fundOperation(custody.policy)
    hostile = await openChatApp({ answerer, urls, count: 1, overrides: { addOperations } })
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    await hostile?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
  })

  async function setLimit(at: ChatApp, userId: string, micros: number | null): Promise<void> {
    await at.db.query(
      `insert into policy (user_id, version, chat_per_day_micros, updated_at) values ($1, 1, $2, now())
       on conflict (user_id) do update set chat_per_day_micros = $2, version = policy.version + 1`,
      [userId, micros],
    )
  }
  /** Holds 100 USDC on Base, and lets chats start so much. */
  async function customer(at: ChatApp, micros: number | null): Promise<Customer> {
    const user = await at.user()
    const { wallets } = await user.get<{ wallets: { address: string; chain_type: string }[] }>('/v1/wallets')
    const address = wallets.find(({ chain_type }) => chain_type === 'evm')!.address
    const { status } = await http(`${world.urls.control}/faucet/fund`, {
      method: 'POST',
      body: { chain_id: base, address, token: 'USDC', amount: '100' },
    })
    assert.equal(status, 200)
    const { rows } = await at.db.query<{ id: string }>('select id from app_user where agent_id = $1', [
      user.agentId,
    ])
    const id = rows[0]!.id
    if (micros !== null) await setLimit(at, id, micros)
    return { ...user, id }
  }
  const outputsOf = (events: SentEvent[]): Output[] =>
    events.flatMap(({ event, data }) => {
      const { data: response } = data as { data?: { name: string; output: Output } }
      return event === 'tool_response' && response && response.name !== 'earn_info' ? [response.output] : []
    })
  const textOf = (events: SentEvent[]): string =>
    events
      .flatMap(({ event, data }) => (event === 'answer' ? [(data as { text: string }).text] : []))
      .join('')
  const depositsOf = async (user: ChatUser) =>
    (await user.get<{ items: Task[] }>('/v1/tasks?kind=earn_deposit')).items
  const policyOf = (user: ChatUser) => user.get<Policy>('/v1/policy')
  async function spentBy(at: ChatApp, { id }: Customer): Promise<{ chat: number; all: number }> {
    const { rows } = await at.db.query<{ chat: string; all: string }>(
      `select coalesce(sum(usd_micros) filter (where c.task_id is not null), 0) as chat,
         coalesce(sum(usd_micros), 0) as all
       from policy_spend s left join policy_chat_spend c using (task_id)
       where s.user_id = $1 and s.state = 'reserved'`,
      [id],
    )
    return { chat: Number(rows[0]!.chat), all: Number(rows[0]!.all) }
  }
  const isWaiting = (output: Output | undefined) => typeof output?.recommendation_id === 'string'

  test('without a limit an order is recommended, and the policy shows that nothing is left', async () => {
    const user = await customer(app, null)
    const events = await user.ask(order)
    assert.deepEqual(outputsOf(events).map(isWaiting), [true])
    assert.match(textOf(events), /It waits for you/)
    assert.deepEqual(await depositsOf(user), [])
    const { chat_per_day_usd, chat_remaining_24h_usd } = await policyOf(user)
    assert.deepEqual([chat_per_day_usd, chat_remaining_24h_usd], ['0', '0'])
  })

  test('an order while money is on hold is refused, and the answer costs nothing', async () => {
    const user = await customer(app, 3_000_000)
    // By more than the clocks of two instances differ, the hold is older than the question.
    const since = new Date(Date.now() - 120_000)
    const hold = { scope: 'all', reason: 'restored' as const, since, detail: {} }
    const credits = async () =>
      (await user.get<{ credits_available: number }>('/v1/credits')).credits_available
    const before = await credits()
    for (const { taskEngine } of app.instances) taskEngine.holds.setLocal(hold)
    const events = await user.ask(order).finally(() => {
      for (const { taskEngine } of app.instances) taskEngine.holds.clearLocal('all')
    })
    assert.match(
      textOf(events),
      /Money is on hold: the database was restored from a backup; nothing was sent\. /,
    )
    const { credits_used, credits_remaining } = events.at(-1)!.data as Record<string, number>
    assert.deepEqual([credits_used, credits_remaining, await credits()], [0, before, before])
    assert.deepEqual(await depositsOf(user), [])
    assert.equal(await ledgerDrift(app.db), 0)
  })

  test('within the limit an order runs once, is counted, and the answer names its task', async () => {
    const user = await customer(app, 3_000_000)
    const events = await user.ask(order)
    const [output] = outputsOf(events)
    assert.match(textOf(events), new RegExp(`Task ${output?.task_id} is .*\nIt was started at once`, 's'))
    assert.match(textOf(events), /by themselves\.\nDeposit 1 USDC into the vault\n- Deposit: 1 USDC$/)
    assert.deepEqual(output?.started, { title: 'Deposit 1 USDC into the vault', detail: 'Deposit: 1 USDC' })
    assert.doesNotMatch(textOf(events), /waits for you/)
    const done = await eventually(
      async () => (await depositsOf(user)).find(({ status }) => status === 'completed'),
      'the deposit',
    )
    assert.equal(done.task_id, output?.task_id)
    assert.equal((await depositsOf(user)).length, 1)
    assert.deepEqual(await spentBy(app, user), { chat: 1_000_000, all: 1_000_000 })
    const { chat_per_day_usd, chat_remaining_24h_usd, spent_24h_usd } = await policyOf(user)
    assert.deepEqual([chat_per_day_usd, chat_remaining_24h_usd, spent_24h_usd], ['3', '2', '1'])
    assert.equal(await ledgerDrift(app.db), 0)

    const thread_id = (events[0]!.data as { thread_id: string }).thread_id
    const cancel = await user.ask('cancel it', { body: { thread_id } })
    assert.deepEqual(
      cancel.flatMap(({ event, data }) => (event === 'tool_call' ? [(data as { data: object }).data] : [])),
      [{ id: '1.cancel', name: 'tasks_cancel', arguments: { task_id: output?.task_id } }],
    )
  })

  test('beyond what is left it is recommended with the reason, and an acceptance is counted apart', async () => {
    const user = await customer(app, 1_500_000)
    const events = await user.ask('put 2 usdc into the vault')
    const [output] = outputsOf(events)
    assert.deepEqual([isWaiting(output), output?.reason], [true, 'chat_per_day_usd'])
    assert.match(textOf(events), /more than is left of what chats may start.*It waits for you/s)
    const chatId = events[0]!.id!.split(':')[0]
    const decided = await http(`${app.url}/v1/chat/${chatId}/recommendations/${output?.recommendation_id}`, {
      method: 'PATCH',
      body: { status: 'accepted' },
      headers: bearer(user),
    })
    assert.equal(decided.status, 200)
    assert.deepEqual(await spentBy(app, user), { chat: 0, all: 2_000_000 })
    assert.equal((await policyOf(user)).chat_remaining_24h_usd, '1.5')
  })

  test('20 chats at once on two instances start what the limit allows, and no more', async () => {
    const user = await customer(app, 2_000_000)
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, at) => user.ask(order, { url: app.instances[at % 2]!.url })),
    )
    const outputs = all.flatMap(outputsOf)
    assert.equal(outputs.length, 20)
    assert.equal((await depositsOf(user)).length, 2)
    assert.equal(outputs.filter(({ task_id }) => task_id !== undefined).length, 2)
    assert.equal(outputs.filter(isWaiting).length, 18, JSON.stringify(outputs))
    assert.deepEqual(await spentBy(app, user), { chat: 2_000_000, all: 2_000_000 })
  })

  test('questions, negations, quotations and thoughts start nothing', async () => {
    const user = await customer(app, 50_000_000)
    for (const text of [
      'should i put 1 usdc into the vault?',
      "don't put 1 usdc into the vault",
      '"put 1 usdc into the vault"',
      'my friend said: put 1 usdc into the vault',
      'what if i put 1 usdc into the vault',
    ])
      await user.ask(text)
    assert.deepEqual(await depositsOf(user), [])
    assert.deepEqual(await spentBy(app, user), { chat: 0, all: 0 })
  })

  test('what needs an approval is recommended and does not wait as a task', async () => {
    const user = await customer(app, 50_000_000)
    const { status } = await http(`${app.url}/v1/policy`, {
      method: 'PUT',
      body: { approval_above_usd: '0' },
      headers: bearer(user),
    })
    assert.equal(status, 200)
    const [output] = outputsOf(await user.ask(order))
    assert.deepEqual([isWaiting(output), output?.reason], [true, 'approval_required'])
    assert.deepEqual(await depositsOf(user), [])
  })

  test('an agent lowers the limit at once and never raises it', async () => {
    const user = await customer(app, 5_000_000)
    const put = (chat_per_day_usd: string) =>
      http(`${app.url}/v1/policy`, { method: 'PUT', body: { chat_per_day_usd }, headers: bearer(user) })
    assert.equal((await put('6')).body.code, 'step_up_required')
    const lowered = await put('0')
    assert.deepEqual([lowered.status, lowered.body.chat_remaining_24h_usd], [200, '0'])
    assert.deepEqual(outputsOf(await user.ask(order)).map(isWaiting), [true])
    assert.deepEqual(await depositsOf(user), [])
  })

  test('an acceptance starts nothing again that the answer has started', async () => {
    const user = await customer(hostile, 1_000_000)
    calls.set(order, { all: [deposit('1')] })
    const events = await user.ask(order)
    const [output] = outputsOf(events)
    const chatId = events[0]!.id!.split(':')[0]!
    // As an instance writes it that did not know of the start.
    const { name, input, id: callId } = deposit('1')
    const id = crypto.randomUUID()
    await hostile.db.query(
      `insert into chat_recommendation values ($1, $2, $3, $4, '', '', $5, $6, $7, 'open', null, null, now(), now(),
         now() + interval '1 hour')`,
      [id, chatId, callId, user.id, name, JSON.stringify(input), callHash(name, input)],
    )
    const decide = (status: string) =>
      http(`${hostile.url}/v1/chat/${chatId}/recommendations/${id}`, {
        method: 'PATCH',
        body: { status },
        headers: bearer(user),
      })
    assert.equal((await decide('declined')).status, 409)
    const accepted = await decide('accepted')
    assert.deepEqual([accepted.status, accepted.body.task_id], [200, output?.task_id])
    assert.equal((await depositsOf(user)).length, 1)
  })

  async function letCall(user: Customer, words: string, all: ToolCall[], together = false) {
    calls.set(words, { all, together })
    const outputs = outputsOf(await user.ask(words))
    return { outputs, started: await depositsOf(user) }
  }

  test('an answerer that asks for more than the words, or for something else, starts nothing', async () => {
    const user = await customer(hostile, 50_000_000)
    const transfer: ToolCall = {
      id: 'b',
      name: 'wallets_transfer',
      input: { chain_id: base, to: `0x${'1'.repeat(40)}`, token: 'USDC', amount: '1' },
    }
    const { outputs, started } = await letCall(user, order, [deposit('1.01'), transfer])
    assert.equal(isWaiting(outputs[0]), true)
    assert.equal(outputs[1]?.task_id, undefined)
    assert.deepEqual(started, [])
    for (const words of ['should i put 1 usdc into the vault?', 'how is the vault', 'put 1 usdc into perps'])
      assert.deepEqual((await letCall(user, words, [deposit('1')])).started, [], words)
    assert.deepEqual(await spentBy(hostile, user), { chat: 0, all: 0 })
  })

  test('what the message orders beyond trades and deposits is recommended', async () => {
    const user = await customer(hostile, 50_000_000)
    const fund = { id: 'a', name: 'perp_fund', input: { amount_usd: '5', source_chain_id: base } }
    const { outputs } = await letCall(user, 'fund perps with $5 from base', [fund])
    assert.deepEqual(outputs.map(isWaiting), [true], JSON.stringify(outputs))
    assert.deepEqual(await spentBy(hostile, user), { chat: 0, all: 0 })
  })

  test('an answerer that asks several times, one after the other or at once, starts one order', async () => {
    for (const together of [false, true]) {
      const user = await customer(hostile, 50_000_000)
      const again = [deposit('1'), deposit('1', 'b'), deposit('1', 'c')]
      const { outputs, started } = await letCall(user, order, again, together)
      assert.equal(started.length, 1, JSON.stringify(outputs))
      assert.equal(outputs.filter(isWaiting).length, 2)
      assert.deepEqual(await spentBy(hostile, user), { chat: 1_000_000, all: 1_000_000 })
    }
  })

  test('an answerer that writes an order into the memory of the thread starts nothing', async () => {
    const user = await customer(hostile, 50_000_000)
    const slots = { amount: '1 usd' }
    const atMs = Date.now()
    const memory = {
      pending: { intent: 'earn_deposit', slots, slot: 'confirm', question: '', choices: [], atMs },
      last: { intent: 'earn_deposit', slots, effect: 'move', atMs },
    }
    calls.set('hello', { all: [], memory })
    const [meta] = await user.ask('hello')
    const thread_id = (meta!.data as { thread_id: string }).thread_id
    for (const words of ['yes', 'do it', 'again']) {
      calls.set(words, { all: [deposit('1')], memory })
      const outputs = outputsOf(await user.ask(words, { body: { thread_id } }))
      assert.deepEqual(outputs.map(isWaiting), [true], words)
    }
    assert.deepEqual(await depositsOf(user), [])
  })
})
