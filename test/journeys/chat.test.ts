import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { portico } from '#sdk/sdk.ts'
import { type Agent, bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'

describe('a chat, from a question to a trade', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  before(async () => {
    gateway = await freshGateway()
  })
  after(async () => gateway?.[Symbol.asyncDispose]())

  async function funded(): Promise<Agent> {
    const agent = await newAgent(gateway.url)
    await eventually(
      async () => {
        const { body } = await http<{ items: { status: string }[] }>(`${gateway.url}/v1/tasks`, {
          headers: bearer(agent),
        })
        return body.items[0]?.status === 'completed' ? true : undefined
      },
      'the faucet grant',
      60_000,
    )
    return agent
  }
  const clientOf = ({ token }: Agent) => portico({ baseUrl: gateway.url, auth: { token } })
  async function ask(agent: Agent, query: string, thread_id?: string) {
    const client = clientOf(agent)
    let answer = ''
    let chatId = ''
    const tools: string[] = []
    for await (const event of client.chat.stream({ query, ...(thread_id && { thread_id }) })) {
      if (event.event === 'meta') chatId = event.data.chat_id
      if (event.event === 'tool_call') tools.push(event.data.data.name)
      if (event.event === 'answer') answer = event.data.text
    }
    const messages = await client.chat.thread({ thread_id: chatId })
    const { recommendations } = messages.at(-1)!
    return { answer, chatId, tools, recommendations }
  }

  test('questions are answered from the operations of the gateway', async () => {
    const agent = await funded()
    for (const [query, tool, answer] of [
      ['what do i hold on base', 'wallets_holdings', /^10,000 USDC on Base, worth 10,000\.00 USD\./],
      ['price of eth', 'perp_markets', /^ETH: [\d,.]+ USD/],
      ['credits left?', 'credits_available', /^197 credits are left\.$/],
      ['what can you do', undefined, /examples of what can be said/],
      ['draw hype on the 4h', undefined, /Choose MarketAnalyzerAgent for the same question/],
    ] as const) {
      const got = await ask(agent, query)
      assert.match(got.answer, answer)
      assert.equal(got.tools[0], tool, query)
      assert.deepEqual(got.recommendations, [])
    }
  })

  test('an open question is answered in the next message of the thread', async () => {
    const agent = await funded()
    const first = await ask(agent, 'swap 20 usdc to eth')
    const { answer, tools, recommendations } = first
    if (recommendations.length === 0) {
      assert.match(answer, /\?/)
      const next = await ask(agent, 'on base', first.chatId)
      assert.deepEqual([...new Set(next.tools)].includes('swap_execute'), true, next.answer)
    } else assert.ok(tools.includes('swap_execute'))
  })

  test('a trade is recommended, and what is accepted is done once', async () => {
    const agent = await funded()
    const { recommendations, chatId, answer } = await ask(agent, 'swap 20 usdc to eth on base')
    assert.match(answer, /You would pay 20 USDC and get about [\d.]+ ETH.*\nIt waits for you/s)
    const [recommendation, ...others] = recommendations
    assert.deepEqual([recommendation?.action?.operation, others], ['swap_execute', []])
    assert.equal(recommendation?.title, 'Swap 20 USDC for ETH on Base')
    assert.match(
      recommendation?.detail ?? '',
      /^Sell: 20 USDC \(0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913\) on Base\nBuy: ETH \(the native coin\) on Base\n(.+\n)*Slippage: at most 1 %/,
    )
    const client = clientOf(agent)
    const decided = await client.chat.decide({
      chat_id: chatId,
      recommendation_id: recommendation!.id,
      status: 'accepted',
    })
    const task = await client.tasks.waitFor(decided.task_id!)
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'])
  })

  test('a limit is lowered where the user says so', async () => {
    const agent = await funded()
    const { answer, tools } = await ask(agent, 'lower my daily limit to 50 dollars')
    assert.deepEqual(tools, ['policy_show', 'policy_tighten'], answer)
    assert.equal((await clientOf(agent).policy.show()).per_day_usd, '50')
  })

  test('the kill switch is what the user says, and at once', async () => {
    const agent = await funded()
    const { answer, tools } = await ask(agent, 'stop everything now')
    assert.match(answer, /^The kill switch is on/)
    assert.deepEqual(tools, ['policy_kill'])
    const policy = await clientOf(agent).policy.show()
    assert.notEqual(policy.paused, null)
  })
})
