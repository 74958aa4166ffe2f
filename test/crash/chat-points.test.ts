/** kill -9 at the boundaries of every statement of an answer, whose client goes on at another gateway. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isEnd, readChat } from '../chat/read-chat.ts'
import { type Agent, bearer, eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import type { SentEvent } from '../harness/stream.ts'
import { isNightly } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { keyAt, killAtEach, recordPoints } from './failpoints.ts'

const taskPointPattern =
  /^db:(task_accept|task_step|chat_append|select chat_turn|select chat_event|select chat_call|select chat_thread|update chat_thread|insert chat_event|select transfer|begin|commit)/
/** One commit for each event that waits for nothing. */
const passesOf = (name: string) => (isNightly ? 50 : name.includes('chat_append') ? 8 : 1)
const query = 'credits left? and what do credit packs cost?'

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

const ask = (url: string, key: string, lastId?: string) =>
  readChat({ url, query, headers: bearer(user), key, ...(lastId !== undefined && { lastId }) })

/** The events as a client receives them that resumes after each lost connection. */
async function askThrough(victim: Gateway, key: string): Promise<SentEvent[]> {
  const got: SentEvent[] = []
  const read = async (url: string) => {
    const lastId = got.at(-1)?.id
    await readChat({
      url,
      query,
      headers: bearer(user),
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

async function assertAnswered(events: SentEvent[], at: string): Promise<void> {
  answered++
  const chatId = events[0]?.id?.split(':')[0]
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, index) => `${chatId}:${index + 1}`),
    `${at}: no gap and nothing twice`,
  )
  assert.deepEqual(events.filter(isEnd).length, 1, at)
  const done = events.at(-1)!
  assert.deepEqual([done.event, (done.data as { status: string }).status], ['done', 'completed'], at)
  const text = events
    .filter(({ event }) => event === 'chunk')
    .map(({ data }) => (data as { text: string }).text)
    .join('')
  assert.equal((events.at(-2)!.data as { text: string }).text, text, at)
  const calls = events.filter(({ event }) => event === 'tool_call').length
  assert.equal(events.filter(({ event }) => event === 'tool_response').length, calls, at)
  const { body } = await http<{ credits_available: number }>(`${survivor.url}/v1/credits`, {
    headers: bearer(user),
  })
  assert.equal(body.credits_available, 200 - answered, `${at}: one credit for each answer`)
  const thread = await http<{ role: string; status: string }[]>(`${survivor.url}/v1/chat/threads/${chatId}`, {
    headers: bearer(user),
  })
  assert.deepEqual(
    thread.body.map(({ status }) => status),
    ['completed', 'completed'],
    at,
  )
}

const pointsOfOneAnswer = (): Promise<string[]> =>
  recordPoints({
    pattern: taskPointPattern,
    passesOf,
    needed,
    shortPoint: 'db:chat_append:after',
    launch: app.gateway,
    work: async ({ url }, attempt) => assertAnswered(await ask(url, attempt), attempt),
  })

const needed = [/^db:task_accept:after/, /^db:chat_append:after/, /^db:task_step:after/]

test('an answer whose gateway is killed at any point is whole, once, and costs one credit', async (t) => {
  await assertAnswered(await ask(survivor.url, 'first'), 'first')
  const points = await pointsOfOneAnswer()
  const reached = await killAtEach(points, app.gateway, async (point, victim) => {
    victim.child.kill('SIGUSR2')
    const events = await askThrough(victim, keyAt(point))
    const died = victim.child.signalCode === 'SIGKILL'
    await victim.kill()
    await assertAnswered(events, point)
    return died
  })
  t.diagnostic(`${reached}, ${answered} answers`)
  await eventually(
    async () => ((await ledgerDrift(app.admin)) === 0 ? true : undefined),
    'the ledger is even',
  )
})
