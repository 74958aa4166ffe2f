/** Analyses and reports, from a question to files that a person keeps, with every figure followed to its source. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Claim } from '#agent/research/claim.ts'
import { portico } from '#sdk/sdk.ts'
import { type Agent, bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { processWorld } from '../harness/process-world.ts'
import { traceReport } from '../market/trace.ts'

type AgentName = 'ProAgent' | 'MarketAnalyzerAgent' | 'ProDeepResearchAgent'
type File = { name: string; content_type: string; size: number; url: string }
type CandleRow = { start: string; close: string }

describe('reports and analyses in a chat', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let venue = ''
  let agent: Agent
  before(async () => {
    gateway = await freshGateway()
    venue = (await processWorld()).hyperliquid
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

  async function ask(query: string, name: AgentName, thread_id?: string) {
    let [answer, chatId] = ['', '']
    const tools: string[] = []
    const steps: string[] = []
    let citations: { n: number; tool: string; pointer: string; fetched_at: string }[] = []
    for await (const event of client().chat.stream({
      query,
      agent: name,
      ...(thread_id !== undefined && { thread_id }),
    })) {
      if (event.event === 'meta') chatId = event.data.chat_id
      if (event.event === 'planning') steps.push(event.data.data.id)
      if (event.event === 'tool_call') tools.push(event.data.data.name)
      if (event.event === 'error') assert.fail(JSON.stringify(event.data))
      if (event.event === 'answer') {
        answer = event.data.text
        citations = event.data.citations
      }
    }
    const { files } = await client().chat.files({ chat_id: chatId })
    const messages = await client().chat.thread({ thread_id: chatId })
    return { answer, chatId, tools, steps, citations, files: files as File[], message: messages.at(-1)! }
  }

  async function load({ url, size, name }: File, folder: string): Promise<Buffer> {
    const reply = await fetch(url)
    assert.equal(reply.status, 200, name)
    const bytes = Buffer.from(await reply.arrayBuffer())
    assert.equal(bytes.length, size, name)
    // For a person who looks at them.
    const target = process.env.REPORT_FOLDER
    if (target !== undefined) {
      mkdirSync(`${target}/${folder}`, { recursive: true })
      writeFileSync(`${target}/${folder}/${name}`, bytes)
    }
    return bytes
  }

  async function loadAll(files: File[], folder: string): Promise<Map<string, Buffer>> {
    const loaded = new Map<string, Buffer>()
    for (const file of files) loaded.set(file.name, await load(file, folder))
    return loaded
  }

  /** Candles as any client of the venue reads them. */
  async function venueCandles(
    coin: string,
    interval: string,
    startTime: number,
  ): Promise<Map<number, number>> {
    const reply = await fetch(`${venue}/info`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'candleSnapshot', req: { coin, interval, startTime } }),
    })
    const rows = (await reply.json()) as { t: number; c: string }[]
    return new Map(rows.map(({ t, c }) => [t, Number(c)]))
  }

  function assertIsChart(bytes: Buffer): void {
    assert.equal(bytes.toString('latin1', 1, 4), 'PNG')
    assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], [1_200, 675])
  }

  const assertCited = (text: string, citations: { n: number; tool: string; fetched_at: string }[]) => {
    const marks = new Set([...text.matchAll(/\[(\d+)\]/g)].map(([, n]) => Number(n)))
    assert.ok(marks.size > 5, text)
    const known = new Set(citations.map(({ n }) => n))
    for (const n of marks) assert.ok(known.has(n), `[${n}] has no citation`)
    for (const { fetched_at, tool } of citations)
      assert.ok(tool !== '' && !Number.isNaN(Date.parse(fetched_at)))
  }

  test('an analysis has three timeframes, a chart of each, its figures as JSON, and costs two credits', async () => {
    const before = (await client().credits.available()).credits_available
    const { answer, files, tools, steps, citations, message } = await ask(
      'draw hype on the 4h',
      'MarketAnalyzerAgent',
    )
    assert.equal((await client().credits.available()).credits_available, Number(before) - 2)
    assert.match(
      answer,
      /^HYPE closed at [\d.,]+ USD \[1\] on \d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC \[2\] \(4h candles\)/,
    )
    for (const part of [
      'Funding is',
      'The open interest is',
      '| 1h |',
      '| 4h |',
      '| 1d |',
      'The rule for this regime',
    ])
      assert.ok(answer.includes(part), `${part} in ${answer}`)
    assertCited(answer, citations)
    assert.deepEqual(steps, ['plan', 'collect', 'compute', 'publish', 'plan'])
    assert.deepEqual(tools.toSorted(), [
      ...Array(3).fill('market_candles'),
      'market_funding',
      'perp_markets',
      'perp_orders',
    ])
    const names = ['chart-1h.png', 'chart-4h.png', 'chart-1d.png', 'analysis.json']
    assert.deepEqual(
      files.map(({ name }) => name),
      names,
    )
    assert.deepEqual(
      message.files.map(({ name }) => name),
      names,
    )
    assert.deepEqual(message.recommendations, [])
    const loaded = await loadAll(files, 'analysis')
    for (const name of names.slice(0, 3)) assertIsChart(loaded.get(name)!)
    const analysis = JSON.parse(loaded.get('analysis.json')!.toString()) as {
      timeframes: { timeframe: string; close: string; closed_at: string }[]
      charts: { file: string; text: string }[]
      claims: Claim[]
    }
    assert.deepEqual(
      analysis.timeframes.map(({ timeframe }) => timeframe),
      ['1h', '4h', '1d'],
    )
    for (const { timeframe, close, closed_at } of analysis.timeframes) {
      const spanMs = { '1h': 1, '4h': 4, '1d': 24 }[timeframe]! * 3_600_000
      assert.ok(Date.parse(closed_at) <= Date.now(), `${timeframe} is closed`)
      const startMs = Date.parse(closed_at) - spanMs
      const truth = await venueCandles('HYPE', timeframe, startMs)
      assert.equal(Number(close), truth.get(startMs), timeframe)
    }
    for (const { file, text } of analysis.charts)
      assert.ok(names.includes(file) && text.includes('candles of HYPE until'))
  })

  test('each figure of a report is traced to a tool, and the candles are those of the venue', async () => {
    const before = (await client().credits.available()).credits_available
    const { answer, files, tools, steps, citations } = await ask(
      'write me a full report on eth',
      'ProDeepResearchAgent',
    )
    assert.equal((await client().credits.available()).credits_available, Number(before) - 5)
    assert.match(answer, /^The verdict is (constructive|neutral|cautious|avoid)/)
    assertCited(answer, citations)
    assert.deepEqual(steps, ['plan', 'scope', 'collect', 'compute', 'check', 'publish', 'plan'])
    for (const tool of [
      'market_candles',
      'market_book',
      'security_check',
      'swap_execute',
      'earn_info',
      'wallets_holdings',
    ])
      assert.ok(tools.includes(tool), `${tool} in ${tools}`)
    assert.deepEqual(
      files.map(({ name }) => name),
      ['report.md', 'claims.json', 'sources.json', 'data.csv', 'chart-performance.png', 'chart-4h.png'],
    )
    assert.ok(files.reduce((sum, { size }) => sum + size, 0) < 20 * 1_048_576)
    const loaded = await loadAll(files, 'report-eth')
    const textOf = (name: string) => loaded.get(name)!.toString()
    const { figures, sources } = traceReport(
      { markdown: textOf('report.md'), claims: textOf('claims.json'), sources: textOf('sources.json') },
      'ETH',
    )
    assert.ok(figures > 80, `${figures} figures`)
    assert.deepEqual(JSON.parse(textOf('claims.json')).dropped, [])
    for (const output of Object.values(sources) as {
      timeframe?: string
      asset?: string
      as_of: string
      candles?: CandleRow[]
    }[]) {
      if (!output.candles) continue
      const truth = await venueCandles(output.asset!, output.timeframe!, Date.parse(output.candles[0]!.start))
      // The last one is open.
      for (const { start, close } of output.candles.slice(0, -1))
        assert.equal(
          Number(close),
          truth.get(Date.parse(start)),
          `${output.asset} ${output.timeframe} ${start}`,
        )
    }
    for (const [, image] of textOf('report.md').matchAll(/\]\((chart-[\w-]+\.png)\)/g))
      assertIsChart(loaded.get(image!)!)
    const rows = textOf('data.csv').trim().split('\r\n')
    assert.ok(rows.length > 1_500 && rows[0]!.startsWith('source,asset,timeframe,start_utc,open'))
  })

  test('an asset without a market is researched by what there is, and has no analysis', async () => {
    const { answer, files } = await ask('research usdc', 'ProDeepResearchAgent')
    assert.match(answer, /The verdict is /)
    assert.deepEqual(
      files.map(({ name }) => name),
      ['report.md', 'claims.json', 'sources.json', 'data.csv'],
    )
    const loaded = await loadAll(files, 'report-usdc')
    const text = loaded.get('report.md')!.toString()
    assert.ok(text.includes('USDC has no perpetual market here'), text)
    traceReport(
      {
        markdown: text,
        claims: loaded.get('claims.json')!.toString(),
        sources: loaded.get('sources.json')!.toString(),
      },
      'USDC',
    )
    const analysis = await ask('chart of usdc', 'MarketAnalyzerAgent')
    assert.match(analysis.answer, /USDC has no perpetual market here/)
    assert.deepEqual(analysis.files, [])
  })

  test('the default agent names the one that draws, and an agent for markets answers other questions, too', async () => {
    const routed = await ask('draw hype on the 4h', 'ProAgent')
    assert.match(routed.answer, /Choose MarketAnalyzerAgent for the same question/)
    assert.deepEqual(routed.files, [])
    const holdings = await ask('what do i hold on base', 'MarketAnalyzerAgent')
    assert.match(holdings.answer, /10,000 USDC on Base/)
  })

  test('an analysis says which candles it has, and the thread goes on with another asset', async () => {
    const first = await ask('chart btc on the 5m', 'MarketAnalyzerAgent')
    assert.match(
      first.answer,
      /^Candles of 5m are not analysed here; this is the analysis of 4h candles\.\n\nBTC closed at/,
    )
    const next = await ask('and sol?', 'MarketAnalyzerAgent', first.chatId)
    assert.match(next.answer, /SOL closed at/)
    const two = await ask('draw eth and sol', 'MarketAnalyzerAgent', first.chatId)
    assert.match(two.answer, /ETH closed at[\s\S]*One market at a time: ask again for SOL\.$/)
  })
})
