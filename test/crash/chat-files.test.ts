/** kill -9 while a report is collected, computed and published: another gateway finishes it with the same results. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isEnd, readChat } from '../chat/read-chat.ts'
import { type Agent, bearer, type Gateway, http, newAgent } from '../harness/gateway.ts'
import type { SentEvent } from '../harness/stream.ts'
import { traceReport } from '../market/trace.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { keyAt, killAtEach, recordPoints } from './failpoints.ts'

const query = 'write me a full report on hype'
const body = { agent: 'ProDeepResearchAgent' }
const names = [
  'report.md',
  'claims.json',
  'sources.json',
  'data.csv',
  'chart-performance.png',
  'chart-4h.png',
]
const creditsPerReport = 5
const pointPattern = /^db:(chat_append|insert chat_file|insert file|insert file_content|select chat_file)/
/** In the middle of the calls, and between two files. */
const passes = [1, 4]

let app: CrashApp
let survivor: Gateway
let user: Agent
let answered = 0

before(async () => {
  app = await createCrashApp()
  survivor = await app.gateway()
  user = await newAgent(survivor.url)
})
after(async () => {
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

async function ask(url: string, key: string, got: SentEvent[]): Promise<void> {
  const lastId = got.at(-1)?.id
  await readChat({
    url,
    query,
    headers: bearer(user),
    key,
    body,
    ...(lastId !== undefined && { lastId }),
    until(event) {
      got.push(event)
      return isEnd(event)
    },
  })
}

async function assertReported(events: SentEvent[], at: string): Promise<void> {
  answered++
  const chatId = events[0]?.id?.split(':')[0]
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, index) => `${chatId}:${index + 1}`),
    `${at}: no gap and nothing twice`,
  )
  assert.deepEqual(
    events.filter(isEnd).map(({ event }) => event),
    ['done'],
    at,
  )
  const calls = events
    .filter(({ event }) => event === 'tool_call')
    .map(({ data }) => (data as { data: { id: string } }).data.id)
  assert.equal(new Set(calls).size, calls.length, `${at}: no call is made again`)
  assert.equal(events.filter(({ event }) => event === 'tool_response').length, calls.length, at)
  type Files = { files: { name: string; url: string }[] }
  const { files } = (await http<Files>(`${survivor.url}/v1/chat/${chatId}/files`, { headers: bearer(user) }))
    .body
  assert.deepEqual(
    files.map(({ name }) => name),
    names,
    at,
  )
  const text = async (name: string) => (await fetch(files.find((file) => file.name === name)!.url)).text()
  const [markdown, claims, sources] = await Promise.all([
    text('report.md'),
    text('claims.json'),
    text('sources.json'),
  ])
  assert.ok(traceReport({ markdown, claims, sources }, 'HYPE').figures > 60, at)
  const { credits_available } = (
    await http<{ credits_available: number }>(`${survivor.url}/v1/credits`, { headers: bearer(user) })
  ).body
  assert.equal(credits_available, 200 - creditsPerReport * answered, at)
}

const pointsOfOneReport = (): Promise<string[]> =>
  recordPoints({
    pattern: pointPattern,
    passesOf: () => Math.max(...passes),
    isTried: (point) => passes.includes(Number(point.split('@')[1])),
    needed,
    shortPoint: 'db:insert chat_file:after@4',
    launch: app.gateway,
    async work({ url }, attempt) {
      const got: SentEvent[] = []
      await ask(url, attempt, got)
      await assertReported(got, attempt)
    },
  })

const needed = [/^db:chat_append:after@4/, /^db:insert chat_file:after@4/]

test('a report whose gateway is killed is finished by another one, with each call and each file once', async (t) => {
  const points = await pointsOfOneReport()
  const reached = await killAtEach(points, app.gateway, async (point, victim) => {
    victim.child.kill('SIGUSR2')
    const got: SentEvent[] = []
    await ask(victim.url, keyAt(point), got).catch(() => undefined)
    if (got.length === 0 || !isEnd(got.at(-1)!)) await ask(survivor.url, keyAt(point), got)
    const died = victim.child.signalCode === 'SIGKILL'
    await victim.kill()
    await assertReported(got, point)
    return died
  })
  t.diagnostic(`${reached}, ${answered} reports`)
})
