/** Chats over the agent service: lost connections, services that die, and takeovers leave one answer and one end. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import type { SentEvent } from '../harness/stream.ts'
import { agentKey, type Frame, frameProxy, type Pass, restartableService } from './agent-app.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { isEnd } from './read-chat.ts'
import { type Line, script } from './scripted-answerer.ts'

type Data = Record<string, unknown> & { text?: string }
const dataOf = ({ data }: SentEvent) => data as Data
const names = (events: SentEvent[]) => events.map(({ event }) => event)
const textOf = (events: SentEvent[]) =>
  events
    .filter(({ event }) => event === 'chunk')
    .map((event) => dataOf(event).text)
    .join('')

const lines: Line[] = [
  { plan: 'Look up credits' },
  { call: 'credits_packs' },
  { note: 'one', usage: { inputTokens: 1, outputTokens: 1 } },
  { publish: 'a.txt', bytes: 500_000 },
  { say: 'word ' },
  { spell: 'abc' },
]
/** A note whose service dies before it is stored is made again. */
const wantedText = /^credits_packs ok\. note [12] of [12]\. word abc$/

function assertWhole(events: SentEvent[], at: string): void {
  const chatId = events[0]?.id?.split(':')[0]
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, index) => `${chatId}:${index + 1}`),
    `${at}: no gap and nothing twice`,
  )
  assert.equal(events.filter(isEnd).length, 1, `${at}: one end`)
  assert.deepEqual([events.at(-1)!.event, dataOf(events.at(-1)!).status], ['done', 'completed'], at)
  assert.match(textOf(events), wantedText, at)
  assert.equal(dataOf(events.at(-2)!).text, textOf(events), at)
  for (const name of ['tool_call', 'tool_response', 'planning'])
    assert.equal(events.filter(({ event }) => event === name).length, 1, `${at}: one ${name}`)
}

describe('an answer over the agent service', () => {
  let app: ChatApp
  let service: Awaited<ReturnType<typeof restartableService>>
  let proxy: Awaited<ReturnType<typeof frameProxy>>
  let asked = 0
  before(async () => {
    service = await restartableService()
    proxy = await frameProxy(service.url)
    app = await openChatApp({ env: { AGENT_URL: proxy.url, AGENT_KEY: agentKey } })
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await service?.[Symbol.asyncDispose]()
  })

  const askThrough = async (
    user: Awaited<ReturnType<ChatApp['user']>>,
    pass: Pass,
    query = script(...lines),
  ) => {
    proxy.use(pass)
    asked += 1
    return user.ask(query, { key: `asked-${asked}`, url: app.url }).finally(() => proxy.use())
  }
  const creditsOf = async (user: Awaited<ReturnType<ChatApp['user']>>) =>
    (await user.get<{ credits_available: number }>('/v1/credits')).credits_available

  test('the service gets the question, and neither the user nor a token', async () => {
    const user = await app.user()
    const frames: string[] = []
    const seen: string[] = []
    const events = await askThrough(user, (frame, direction) => {
      frames.push(JSON.stringify(frame))
      if (direction === 'to-gateway' && frame.type === 'event') seen.push(String(frame.event))
      return 'pass'
    })
    assertWhole(events, 'plain')
    assert.deepEqual(
      [...new Set(seen)],
      ['planning', 'tool_call', 'chunk', 'note_get', 'note_put', 'file', 'done'],
    )
    const { user_id: userId } = await user.get<{ user_id: string }>('/v1/user')
    for (const secret of [user.token, userId, agentKey])
      assert.ok(
        !frames.some((frame) => frame.includes(secret)),
        'a frame names what the service may not know',
      )
    const { files } = await user.get<{ files: { size: number }[] }>(
      `/v1/chat/${dataOf(events[0]!).chat_id}/files`,
    )
    assert.deepEqual(
      files.map(({ size }) => size),
      [500_000],
    )
  })

  /** Cuts before or after the n-th frame of a run; undefined once there are fewer. */
  const cutAt = (n: number, isAfter: boolean) => {
    let count = 0
    let isCut = false
    const pass: Pass = (frame) => {
      if (frame.run_id === undefined || isCut) return 'pass'
      count += 1
      if (count < n) return 'pass'
      isCut = true
      if (!isAfter) return 'cut'
      setImmediate(() => proxy.cut())
      return 'pass'
    }
    return { pass, isCut: () => isCut }
  }

  test('a connection cut at every frame, in both directions, leaves no gap and nothing twice', async () => {
    const user = await app.user()
    let cuts = 0
    let before = await creditsOf(user)
    for (let n = 1; ; n++) {
      const cut = cutAt(n, n % 2 === 0)
      assertWhole(await askThrough(user, cut.pass), `cut ${n}`)
      assert.equal(await creditsOf(user), before - 1, `cut ${n}: one credit`)
      before -= 1
      if (!cut.isCut()) break
      cuts += 1
    }
    assert.ok(cuts >= 20, `only ${cuts} cuts`)
  })

  test('a service that dies at every event and comes back empty leaves one answer', async () => {
    const user = await app.user()
    let deaths = 0
    let before = await creditsOf(user)
    for (let n = 1; ; n++) {
      let count = 0
      let death: Promise<void> | undefined
      const events = await askThrough(user, (frame, direction) => {
        if (death || direction !== 'to-gateway' || frame.type !== 'event') return 'pass'
        count += 1
        if (count < n) return 'pass'
        death = service.stop().then(() => service.start())
        return 'cut'
      })
      await death
      assertWhole(events, `death ${n}`)
      assert.equal(await creditsOf(user), before - 1, `death ${n}: one credit`)
      before -= 1
      if (!death) break
      deaths += 1
    }
    assert.ok(deaths >= 8, `only ${deaths} deaths`)
  })

  test('a service that stays away is one error, and the credits come back', async () => {
    const user = await app.user()
    const before = await creditsOf(user)
    await service.stop()
    const events = await askThrough(user, () => 'pass').finally(() => service.start())
    assert.deepEqual(names(events), ['meta', 'error'])
    assert.equal(dataOf(events.at(-1)!).code, 'unavailable')
    assert.equal(await creditsOf(user), before)
  })

  test('another instance takes the turn over, and the service ends the first run', async () => {
    const user = await app.user()
    const runs: Frame[] = []
    let isTaken = false
    proxy.use((frame) => {
      if (frame.type === 'start' || frame.type === 'closed') runs.push(frame)
      return 'pass'
    })
    const events = await user.ask(script({ call: 'credits_packs' }, { spell: 'x'.repeat(80), everyMs: 15 }), {
      until: (event) => {
        if (event.event === 'chunk' && event.id?.endsWith(':12') && !isTaken) {
          isTaken = true
          void app.takeOver(event.id.split(':')[0]!)
        }
        return isEnd(event)
      },
    })
    assert.ok(isTaken)
    assert.equal(textOf(events), `credits_packs ok. ${'x'.repeat(80)}`)
    assert.equal(events.filter(isEnd).length, 1)
    assert.equal(events.filter(({ event }) => event === 'tool_call').length, 1)
    const [first, second, ...more] = runs.filter(({ type }) => type === 'start')
    assert.deepEqual(more, [])
    assert.equal(first?.chat_id, second?.chat_id)
    const closed = await eventually(
      async () => runs.find(({ type, run_id }) => type === 'closed' && run_id === first?.run_id),
      'the end of the first run',
    )
    proxy.use()
    assert.equal(closed.reason, 'superseded')
  })

  test('unknown frames, events and fields change nothing', async () => {
    const user = await app.user()
    const events = await askThrough(user, (frame) => [
      { type: 'later', run_id: frame.run_id ?? 'none', seq: 1 },
      { ...frame, later: { any: [1] } },
    ])
    assertWhole(events, 'unknown')
  })

  test('a cancel reaches the answerer, and what it has said is the answer', async () => {
    const user = await app.user()
    const reasons: unknown[] = []
    proxy.use((frame) => {
      if (frame.type === 'cancel') reasons.push(frame.reason)
      return 'pass'
    })
    const events = await user.ask(script({ say: 'before ' }, { hang: true }, { say: 'late' }), {
      until: (event) => {
        if (event.event === 'chunk') {
          const url = `${app.url}/v1/chat/${event.id!.split(':')[0]}/cancel`
          void http(url, { method: 'POST', headers: bearer(user) })
        }
        return isEnd(event)
      },
    })
    proxy.use()
    assert.equal(textOf(events), 'before ')
    assert.deepEqual([events.at(-1)!.event, dataOf(events.at(-1)!).status], ['done', 'cancelled'])
    assert.deepEqual(reasons, ['user'])
  })

  test('the ledger is even after all of it, and the service keeps no run', async () => {
    assert.equal(await ledgerDrift(app.db), 0)
    assert.equal(service.runs(), 0)
  })
})
