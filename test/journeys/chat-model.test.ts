/** A chat that a language model answers, on the whole local world: a question with figures, and a swap that is accepted. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { portico } from '#sdk/sdk.ts'
import { type Agent, bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { text, tools } from '../harness/model-world.ts'
import { processWorld } from '../harness/process-world.ts'

for (const api of ['openai', 'anthropic'] as const)
  describe(`a chat with the local model in the interface of ${api}`, () => {
    let gateway: Awaited<ReturnType<typeof freshGateway>>
    let control = ''
    let agent: Agent
    before(async () => {
      const world = await processWorld()
      control = world.control
      gateway = await freshGateway({ MODEL_URL: world.model, MODEL_NAME: 'local', MODEL_API: api })
      agent = await newAgent(gateway.url)
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
    })
    after(async () => gateway?.[Symbol.asyncDispose]())

    const client = () => portico({ baseUrl: gateway.url, auth: { token: agent.token } })
    let scripts = 0
    async function answers(contains: string, ...turns: object[][]): Promise<void> {
      const body = { name: `s-${++scripts}`, contains, turns }
      const { status } = await http(`${control}/model/scripts`, { method: 'PUT', body })
      assert.equal(status, 200)
    }
    async function ask(query: string) {
      let [answer, chatId, used] = ['', '', 0]
      let citations: { tool: string }[] = []
      const called: string[] = []
      for await (const event of client().chat.stream({ query })) {
        if (event.event === 'meta') chatId = event.data.chat_id
        if (event.event === 'tool_call') called.push(event.data.data.name)
        if (event.event === 'answer') [answer, citations] = [event.data.text, event.data.citations]
        if (event.event === 'done') used = event.data.credits_used
        if (event.event === 'error') assert.fail(JSON.stringify(event.data))
      }
      const messages = await client().chat.thread({ thread_id: chatId })
      return { answer, chatId, called, citations, used, recommendations: messages.at(-1)!.recommendations }
    }

    test('a question is answered with the figures of the world', async () => {
      await answers(
        'hold on base',
        [tools([{ name: 'wallets_holdings', arguments: {} }])],
        [text('You hold 10,000 USDC on Base.')],
      )
      const { answer, called, citations } = await ask('what do i hold on base?')
      assert.equal(answer, 'You hold 10,000 USDC on Base.')
      assert.deepEqual(called, ['wallets_holdings'])
      assert.deepEqual(
        citations.map(({ tool }) => tool),
        ['wallets_holdings'],
      )
    })

    test('a swap becomes a recommendation, which is done once it is accepted', async () => {
      const input = { token_in: 'USDC', token_out: 'ETH', chain_id_in: '8453', amount: '20000000' }
      await answers(
        'swap 20 usdc',
        [tools([{ name: 'swap_execute', arguments: input }])],
        [text('The swap of 20 USDC waits for you.')],
      )
      const { answer, chatId, recommendations } = await ask('swap 20 usdc to eth on base')
      const [recommendation, ...others] = recommendations
      assert.deepEqual([recommendation?.action?.operation, others], ['swap_execute', []], answer)
      const decided = await client().chat.decide({
        chat_id: chatId,
        recommendation_id: recommendation!.id,
        status: 'accepted',
      })
      const task = await client().tasks.waitFor(decided.task_id!)
      assert.deepEqual([task.status, task.outcome], ['completed', 'executed'])
    })

    test('the capabilities say what is held', async () => {
      const { body } = await http<{ chat: { agents: { name: string; credits_estimate: number }[] } }>(
        `${gateway.url}/capabilities`,
      )
      assert.deepEqual(
        body.chat.agents.map(({ name, credits_estimate }) => [name, credits_estimate]),
        [
          ['ProAgent', 5],
          ['ProDeepResearchAgent', 40],
          ['MarketAnalyzerAgent', 10],
        ],
      )
    })
  })
