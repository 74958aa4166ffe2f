/** Clients whose packages the test installs: each lists, reads, swaps, waits and repeats. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { type ForeignPackages, foreignPackages } from '../harness/foreign-packages.ts'
import { eventually, freshGateway, type Gateway, newAgent } from '../harness/gateway.ts'
import { play, textOfResult } from './foreign-journey.ts'

let gateway: Gateway
let packages: ForeignPackages | string
before(async () => {
  packages = await foreignPackages('mcp')
  if (typeof packages !== 'string') gateway = await freshGateway()
})
after(() => gateway?.[Symbol.asyncDispose]())

async function newUser(): Promise<{ authorization: string }> {
  const { token } = await newAgent(gateway.url)
  const headers = { authorization: `Bearer ${token}` }
  await eventually(async () => {
    const reply = await fetch(`${gateway.url}/v1/tasks?kind=faucet_grant`, { headers })
    const { items } = (await reply.json()) as { items: { status: string }[] }
    return items[0]?.status === 'completed' || undefined
  }, 'the faucet grant')
  return headers
}

type Input = Record<string, unknown>
const withPackages =
  (run: (packages: ForeignPackages) => Promise<void>) =>
  async (context: TestContext): Promise<void> => {
    if (typeof packages === 'string') return context.skip(packages)
    await run(packages)
  }

type LangchainTool = { name: string; invoke(input: Input): Promise<unknown> }
type Langchain = {
  MultiServerMCPClient: new (
    settings: object,
  ) => { getTools(): Promise<LangchainTool[]>; close(): Promise<void> }
}
test(
  '@langchain/mcp-adapters',
  withPackages(async (found) => {
    const { MultiServerMCPClient } = found.require<Langchain>('@langchain/mcp-adapters')
    const client = new MultiServerMCPClient({
      mcpServers: {
        portico: { transport: 'http', url: `${gateway.url}/mcp`, headers: await newUser() },
      },
      defaultToolTimeout: 90_000,
    })
    const tools = await client.getTools()
    const call = async (name: string, input: Input): Promise<string> => {
      const tool = tools.find((each) => each.name === name)
      assert.ok(tool, name)
      try {
        return textOfResult(await tool.invoke(input))
      } catch (error) {
        // The adapter throws what a tool refuses, with the text of the tool in its message.
        const { message } = error as Error
        return message.slice(message.indexOf('{'))
      }
    }
    await play(
      'langchain',
      tools.map(({ name }) => name),
      call,
    )
    await client.close()
  }),
)

type Session = {
  listTools(): Promise<{ name: string }[]>
  callTool(name: string, input: Input): Promise<{ content: { text: string }[] }>
}
type McpUse = {
  MCPClient: new (
    settings: object,
  ) => { createSession(name: string): Promise<Session>; closeAllSessions(): Promise<void> }
}
test(
  'mcp-use',
  withPackages(async (found) => {
    const { MCPClient } = found.require<McpUse>('mcp-use/client')
    const client = new MCPClient({
      mcpServers: { portico: { url: `${gateway.url}/mcp`, headers: await newUser() } },
    })
    const session = await client.createSession('portico')
    const names = (await session.listTools()).map(({ name }) => name)
    await play(
      'mcp-use',
      names,
      async (name, input) => (await session.callTool(name, input)).content[0]?.text ?? '',
    )
    await client.closeAllSessions()
  }),
)
