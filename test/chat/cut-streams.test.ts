/** Answers that are cut at every event: by their client, by the end of the instance that writes them, and by the network. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { randomOf } from '../crash/venue-traders.ts'
import { type Cut, cutHeader, cuttingProxy } from '../harness/cutting-proxy.ts'
import { bearer, eventually } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import type { SentEvent } from '../harness/stream.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { isEnd, readChat } from './read-chat.ts'
import { script } from './scripted-answerer.ts'

const runs = bySize({ short: 150, full: 300, nightly: 1_000 })
const atOnce = 6
/** Below the credits of a new user. */
const runsPerUser = 100
/** Answers under way on an instance that stops. */
const runsPerStop = 5
const readsMax = 60

const answered = script(
  { plan: 'First' },
  { call: 'credits_packs' },
  { plan: 'Then' },
  { call: 'credits_available' },
  { spell: 'abcdefgh', everyMs: 2 },
)
const failed = script(
  { plan: 'First' },
  { call: 'credits_packs' },
  { spell: 'abcd', everyMs: 2 },
  { fail: 'fault' },
)
const eventsOfAnswer = 20
const eventsOfFailure = 10

type Run = { at: number; query: string; key: string; user: ChatUser; random: () => number }
type Done = { run: Run; events: SentEvent[] }

const dataOf = <Data>({ data }: SentEvent) => data as Data
const textOf = (events: readonly SentEvent[]): string =>
  events
    .filter(({ event }) => event === 'chunk')
    .map((event) => dataOf<{ text: string }>(event).text)
    .join('')

describe('cut streams', () => {
  const seed = proofSeed('cut streams')
  let app: ChatApp
  let proxies: Awaited<ReturnType<typeof cuttingProxy>>[]
  const users: ChatUser[] = []
  const done: Done[] = []
  before(async () => {
    app = await openChatApp({ env: { RATE_STREAM: '0', RATE_READ: '0' } })
    proxies = await Promise.all(app.instances.map(({ url }) => cuttingProxy(url)))
  })
  after(async () => {
    for (const proxy of proxies ?? []) await proxy[Symbol.asyncDispose]()
    await app?.[Symbol.asyncDispose]()
  })

  /** Every event in turn, of an answer and, less often, of a failure. */
  async function runsOf(side: string, count: number): Promise<Run[]> {
    const own: Run[] = []
    for (let n = 0; n < count; n++) {
      const taken = done.length + n
      users[Math.floor(taken / runsPerUser)] ??= await app.user()
      const isFailure = n % 5 === 4
      const at = 1 + (n % (isFailure ? eventsOfFailure : eventsOfAnswer))
      own.push({
        at,
        query: isFailure ? failed : answered,
        key: `${side}-${n}`,
        user: users[Math.floor(taken / runsPerUser)]!,
        random: randomOf(seed + taken),
      })
    }
    return own
  }

  const anyUrl = (random: () => number): string =>
    app.instances[Math.floor(random() * app.instances.length)]!.url

  type Read = { url: string; until?: (event: SentEvent) => boolean; cut?: Cut }
  /** Reads on from what has come; a lost connection is no error. */
  async function readOn(
    { query, key, user }: Run,
    got: SentEvent[],
    { url, until, cut }: Read,
  ): Promise<void> {
    const lastId = got.at(-1)?.id
    await readChat({
      url,
      query,
      key,
      headers: { ...bearer(user), ...(cut && cutHeader(cut)) },
      ...(lastId !== undefined && { lastId }),
      until(event) {
        got.push(event)
        return isEnd(event) || until?.(event) === true
      },
    }).catch((error: unknown) => {
      const isLost =
        error instanceof TypeError || (error instanceof Error && /terminated|aborted/.test(error.message))
      assert.ok(isLost, String(error))
    })
  }

  async function readToEnd(run: Run, got: SentEvent[]): Promise<Done> {
    for (let reads = 0; got.length === 0 || !isEnd(got.at(-1)!); reads++) {
      assert.ok(reads < readsMax, `${run.key}: no end after ${reads} reads`)
      // A second cut sometimes, at any later event.
      const isCut = run.random() < 0.3
      const more = got.length + 1 + Math.floor(run.random() * 4)
      await readOn(run, got, { url: anyUrl(run.random), until: () => isCut && got.length >= more })
    }
    return { run, events: got }
  }

  async function runAll(own: readonly Run[], one: (run: Run) => Promise<Done>): Promise<void> {
    const queue = [...own]
    const work = async () => {
      for (let run = queue.shift(); run; run = queue.shift()) {
        const each = await one(run)
        await assertWhole(each)
        done.push(each)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }

  async function assertWhole({ run, events }: Done): Promise<void> {
    const at = `${run.key}, event ${run.at}`
    const chatId = events[0]?.id?.split(':')[0]
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, index) => `${chatId}:${index + 1}`),
      `${at}: no gap and nothing twice`,
    )
    assert.equal(events[0]!.event, 'meta', at)
    assert.deepEqual(
      events.filter(isEnd).map(({ event }) => event),
      [run.query === failed ? 'error' : 'done'],
      at,
    )
    const calls = events.flatMap((each) =>
      each.event === 'tool_call' ? dataOf<{ data: { id: string } }>(each).data.id : [],
    )
    assert.equal(new Set(calls).size, calls.length, `${at}: each call once`)
    const text =
      run.query === failed ? 'credits_packs ok. abcd' : 'credits_packs ok. credits_available ok. abcdefgh'
    assert.equal(textOf(events), text, at)
    const answer = events.find(({ event }) => event === 'answer')
    assert.equal(answer && dataOf<{ text: string }>(answer).text, run.query === failed ? undefined : text, at)
    const again = await run.user.ask(run.query, { key: run.key, url: anyUrl(run.random) })
    assert.deepEqual(again, events, `${at}: read again from the beginning`)
    type Message = { role: string; status: string; answer: string; query: string; credits_used: number }
    const messages = await run.user.get<Message[]>(`/v1/chat/threads/${chatId}`)
    const status = run.query === failed ? 'failed' : 'completed'
    assert.deepEqual(
      messages.map(({ role, query, answer: said }) => [role, query, said]),
      [
        ['user', run.query, null],
        ['assistant', run.query, text],
      ],
      at,
    )
    assert.deepEqual(
      [messages[1]!.status, messages[1]!.credits_used],
      [status, run.query === failed ? 0 : 1],
      at,
    )
  }

  const shareOf = (part: number): number => Math.floor((runs * part) / 10)

  test('a client that leaves after any event goes on at any instance', async () => {
    await runAll(await runsOf('left', shareOf(4)), async (run) => {
      const got: SentEvent[] = []
      await readOn(run, got, { url: anyUrl(run.random), until: () => got.length >= run.at })
      return readToEnd(run, got)
    })
  })

  test('a connection that is cut within any event shows no part of it, and the client goes on', async () => {
    const own = await runsOf('cut', shareOf(3))
    await runAll(own, async (run) => {
      const got: SentEvent[] = []
      const proxy = proxies[Math.floor(run.random() * proxies.length)]!
      const cut = { event: run.at, bytes: Math.floor(run.random() * 120) }
      await readOn(run, got, { url: proxy.url, cut })
      return readToEnd(run, got)
    })
    const cuts = proxies.reduce((sum, proxy) => sum + proxy.cuts(), 0)
    assert.ok(cuts >= own.length * 0.8, `only ${cuts} of ${own.length} were cut`)
  })

  test('an answer whose instance loses it at any event is finished by another one', async () => {
    const own = await runsOf('lost', shareOf(2))
    await runAll(own, async (run) => {
      const got: SentEvent[] = []
      await readOn(run, got, {
        url: anyUrl(run.random),
        until({ id }) {
          // As after a lease that ended: its writes count no more, and the task is anyone's.
          if (got.length === run.at)
            void app.db.query(
              `with lost as (update task set version = version + 1 where id = $1 and status = 'running')
               update task_queue set owner = null, run_at = now() where task_id = $1`,
              [id!.split(':')[0]],
            )
          return false
        },
      })
      return readToEnd(run, got)
    })
  })

  test('answers of an instance that stops at any event are finished by the others', async () => {
    const own = await runsOf('stopped', runs - done.length)
    for (let first = 0; first < own.length; first += runsPerStop) {
      const victim = await app.add()
      let stopping: Promise<void> | undefined
      const stop = () => {
        stopping ??= victim[Symbol.asyncDispose]()
      }
      await runAll(own.slice(first, first + runsPerStop), async (run) => {
        const got: SentEvent[] = []
        await readOn(run, got, {
          url: victim.url,
          until() {
            if (got.length >= run.at) stop()
            return false
          },
        })
        return readToEnd(run, got)
      })
      stop()
      await stopping
    }
  })

  test('the credits are right to the unit, and nothing of a run is left', async (t) => {
    assert.equal(done.length, runs)
    type History = {
      items: { task_id: string | null; kind: string; credits: number }[]
      next_before: string | null
    }
    for (const user of users) {
      const own = done.filter(({ run }) => run.user === user)
      const paid = own
        .filter(({ run }) => run.query !== failed)
        .map(({ events }) => events[0]!.id!.split(':')[0])
      const { credits_available } = await user.get<{ credits_available: number }>('/v1/credits')
      assert.equal(credits_available, 200 - paid.length)
      const taken: (string | null)[] = []
      for (let before: string | null = ''; before !== null; ) {
        const page: History = await user.get(
          `/v1/credits/history?limit=100${before === '' ? '' : `&before=${before}`}`,
        )
        for (const { kind, task_id, credits } of page.items) {
          if (kind !== 'chat') continue
          assert.equal(credits, -1)
          taken.push(task_id)
        }
        before = page.next_before
      }
      assert.deepEqual(taken.toSorted(), paid.toSorted())
    }
    await eventually(async () => ((await ledgerDrift(app.db)) === 0 ? true : undefined), 'the ledger is even')
    const { rows } = await app.db.query<{ held: string; calls: string; taken: string }>(
      `select (select coalesce(sum(held), 0) from account where asset = 'credits') as held,
         (select count(*) from chat_call) as calls,
         (select count(*) from (select chat_id from chat_event group by chat_id having count(distinct epoch) > 1) x) as taken`,
    )
    assert.deepEqual([Number(rows[0]!.held), Number(rows[0]!.calls)], [0, 0])
    t.diagnostic(`${done.length} runs, ${rows[0]!.taken} answers were written by more than one instance`)
    assert.ok(Number(rows[0]!.taken) >= shareOf(1), `${rows[0]!.taken} takeovers`)
  })
})
