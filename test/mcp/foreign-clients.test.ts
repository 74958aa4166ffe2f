/** Frameworks for agents and a bridge, unmodified, with a scripted model: each lists, reads, swaps, waits and repeats. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createMCPClient } from '@ai-sdk/mcp'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { Agent, MCPServerStreamableHttp, type Model, Runner, setTracingDisabled, Usage } from '@openai/agents'
import { generateText, isStepCount } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { eventually, freshGateway, type Gateway, newAgent } from '../harness/gateway.ts'
import { signInApp } from '../journeys/signed-in.ts'
import { createBrowser, signUp } from '../oauth/oauth-app.ts'
import { facade } from './clients.ts'
import { assertListed, play, swapScript, textOfResult } from './foreign-journey.ts'

let gateway: Gateway
before(async () => {
  gateway = await freshGateway()
})
after(() => gateway?.[Symbol.asyncDispose]())

/** Waits for the first funds of a user. */
const funded = (authorization: string) =>
  eventually(async () => {
    const reply = await fetch(`${gateway.url}/v1/tasks?kind=faucet_grant`, { headers: { authorization } })
    const { items } = (await reply.json()) as { items: { status: string }[] }
    return items[0]?.status === 'completed' || undefined
  }, 'the faucet grant')
async function newUser(): Promise<{ authorization: string }> {
  const { token } = await newAgent(gateway.url)
  const authorization = `Bearer ${token}`
  await funded(authorization)
  return { authorization }
}

test('@openai/agents', async () => {
  setTracingDisabled(true)
  const headers = await newUser()
  const server = new MCPServerStreamableHttp({
    url: `${gateway.url}/mcp`,
    requestInit: { headers },
    timeout: 90_000,
  })
  await server.connect()
  const { next, check } = swapScript('openai-agents')
  const texts: string[] = []
  const model: Model = {
    async getResponse({ input, tools }) {
      assertListed(tools.map(({ name }) => name))
      const results =
        typeof input === 'string' ? [] : input.filter(({ type }) => type === 'function_call_result')
      texts.splice(
        0,
        texts.length,
        ...results.map((each) => textOfResult((each as { output: unknown }).output)),
      )
      const call = next(texts)
      const usage = new Usage()
      if (!call)
        return {
          usage,
          output: [
            {
              type: 'message',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: 'Done.' }],
            },
          ],
        }
      const { name, input: given } = call
      return {
        usage,
        output: [
          {
            type: 'function_call',
            callId: `call-${texts.length}`,
            name,
            arguments: JSON.stringify(given),
            status: 'completed',
          },
        ],
      }
    },
    getStreamedResponse() {
      throw new Error('nothing is streamed here')
    },
  }
  const agent = new Agent({ name: 'Trader', model, mcpServers: [server] })
  const { finalOutput } = await new Runner().run(agent, 'Swap some dollars into ether.')
  await server.close()
  assert.equal(finalOutput, 'Done.')
  check(texts)
})

test('ai with @ai-sdk/mcp', async () => {
  const headers = await newUser()
  const client = await createMCPClient({ transport: { type: 'http', url: `${gateway.url}/mcp`, headers } })
  const tools = await client.tools()
  assertListed(Object.keys(tools))
  const { next, check } = swapScript('ai-sdk')
  const texts: string[] = []
  const model = new MockLanguageModelV4({
    async doGenerate({ prompt }) {
      const results = prompt.flatMap((each) => (each.role === 'tool' ? each.content : []))
      texts.splice(
        0,
        texts.length,
        ...results.flatMap((each) => (each.type === 'tool-result' ? [textOfResult(each.output)] : [])),
      )
      const call = next(texts)
      const usage = {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      }
      return {
        usage,
        warnings: [],
        finishReason: { unified: call ? 'tool-calls' : 'stop', raw: undefined },
        content: call
          ? [
              {
                type: 'tool-call',
                toolCallId: `call-${texts.length}`,
                toolName: call.name,
                input: JSON.stringify(call.input),
              },
            ]
          : [{ type: 'text', text: 'Done.' }],
      }
    },
  })
  const { text } = await generateText({
    model,
    tools,
    stopWhen: isStepCount(10),
    prompt: 'Swap some dollars into ether.',
  })
  assert.equal(text, 'Done.')
  check(texts)
  await client.close()
})

const proxy = fileURLToPath(new URL('../../node_modules/mcp-remote/dist/proxy.js', import.meta.url))

/** mcp-remote between a client over standard input and the gateway; `onLine` gets what it prints. */
async function bridged(args: readonly string[], onLine: (line: string) => void) {
  const home = mkdtempSync(join(tmpdir(), 'mcp-remote-'))
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [proxy, `${gateway.url}/mcp`, '--allow-http', ...args],
    // Without a path it finds no browser to open.
    env: { HOME: home, MCP_REMOTE_CONFIG_DIR: home, PATH: '' },
    stderr: 'pipe',
  })
  let rest = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(transport, { timeout: 60_000 })
  const shown = facade('mcp-remote', client)
  return {
    names: (await shown.listTools()).map(({ name }) => name),
    call: async (name: string, input: Record<string, unknown>) =>
      (await shown.call(name, input)).content[0]?.text ?? '',
    async [Symbol.asyncDispose]() {
      await client.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

test('mcp-remote with a header', async () => {
  const { authorization } = await newUser()
  await using client = await bridged(['--header', `Authorization:${authorization}`], () => {})
  await play('mcp-remote-header', client.names, client.call)
})

test('mcp-remote signs a person in, with a browser of its own choice', async () => {
  const browser = createBrowser()
  const app = signInApp(gateway)
  let visits: Promise<unknown> | undefined
  const visit = async (url: string) => {
    const consent = await signUp(app, browser, await browser.open(url), 'bridge@example.com')
    const { url: back } = await browser.submit(consent, 'allow', { trade: 'yes' })
    await fetch(back)
  }
  await using client = await bridged([], (line) => {
    const url = /https?:\/\/\S+\/oauth\/authorize\?\S+/.exec(line)?.[0]
    if (url) visits ??= visit(url)
  })
  await visits
  await eventually(async () => {
    const { items } = JSON.parse(await client.call('tasks_list', { kind: 'faucet_grant' })) as {
      items: { status: string }[]
    }
    return items[0]?.status === 'completed' || undefined
  }, 'the faucet grant')
  await play('mcp-remote', client.names, client.call)
})
