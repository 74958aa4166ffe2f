/** What a service may not do to a gateway, and a gateway to a service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type RawData, WebSocket } from 'ws'
import { agentPath, agentProtocol, frameBytesMax, windowMax } from '#kernel/wire/agent-protocol.ts'
import { bearer, eventually } from '../harness/gateway.ts'
import type { SentEvent } from '../harness/stream.ts'
import { agentKey, type Frame, frameProxy, framesOf, type Pass, restartableService } from './agent-app.ts'
import { type ChatApp, openChatApp } from './chat-app.ts'
import { isEnd } from './read-chat.ts'
import { type Line, script } from './scripted-answerer.ts'

type Peer = {
  socket: WebSocket
  frames: Frame[]
  send(...frames: object[]): void
  frame(isWanted: (frame: Frame) => boolean): Promise<Frame>
}

async function connect(url: string, key = agentKey): Promise<Peer> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${agentPath}`, agentProtocol, {
    headers: { authorization: `Bearer ${key}` },
  })
  const frames: Frame[] = []
  socket.on('message', (data: RawData) => {
    frames.push(...framesOf(data))
  })
  await once(socket, 'open')
  return {
    socket,
    frames,
    send: (...sent) => socket.send(sent.map((frame) => JSON.stringify(frame)).join('\n')),
    frame: (isWanted) => eventually(async () => frames.find(isWanted), 'the frame'),
  }
}
const hello = { type: 'hello', gateway: 'test', version: '0' }
const startOf = (runId: string, ...lines: Line[]) => ({
  type: 'start',
  run_id: runId,
  chat_id: `chat of ${runId}`,
  agent: 'ProAgent',
  query: script(...lines),
  asked_at: new Date().toISOString(),
  said: '',
  memory: null,
  credits_max: 1,
  ms_max: 60_000,
  names_version: 'none',
})
const statusOf = async (url: string, key: string): Promise<number> => {
  const socket = new WebSocket(url, agentProtocol, { headers: { authorization: `Bearer ${key}` } })
  socket.on('error', () => undefined)
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
  return response.statusCode
}

describe('a service', () => {
  let service: Awaited<ReturnType<typeof restartableService>>
  before(async () => {
    service = await restartableService({ runsMax: 2, runHeldMs: 200 })
  })
  after(async () => service?.[Symbol.asyncDispose]())

  test('lets nobody in without its key or by another path', async () => {
    const url = `${service.url.replace('http', 'ws')}${agentPath}`
    for (const key of ['', agentKey.slice(1), `${agentKey}0`, agentKey.toUpperCase().padStart(64, 'x')])
      assert.equal(await statusOf(url, key), 401)
    assert.equal(await statusOf(`${url}/more`, agentKey), 404)
  })

  test('ends a connection that does not follow the protocol', async () => {
    const cases: [string, (peer: Peer) => void, number][] = [
      ['no hello', ({ send }) => send(startOf('a')), 1008],
      ['no JSON', ({ socket }) => socket.send('{'), 1008],
      ['another form', ({ send }) => send(hello, { type: 'start', run_id: 7 }), 1008],
      ['a binary message', ({ socket }) => socket.send(Buffer.from('{}')), 1008],
      ['a large message', ({ socket }) => socket.send('x'.repeat(frameBytesMax + 1)), 1009],
    ]
    for (const [name, act, wanted] of cases) {
      const peer = await connect(service.url)
      act(peer)
      const [code] = (await once(peer.socket, 'close')) as [number]
      assert.equal(code, wanted, name)
    }
  })

  test('sends no more than the window, goes on after an acknowledgement, and forgets a run whose gateway is away', async () => {
    const peer = await connect(service.url)
    peer.send(hello, startOf('slow', { spell: 'x'.repeat(5_000) }))
    const eventsOf = () => peer.frames.filter(({ type }) => type === 'event')
    const last = await eventually(async () => {
      const found = eventsOf().at(-1)
      await new Promise((resolve) => setImmediate(resolve))
      return found && found === eventsOf().at(-1) ? found : undefined
    }, 'the window')
    assert.ok(last.seq! <= windowMax.events && last.seq! >= 500, `${last.seq} events`)
    peer.send({ type: 'ack', run_id: 'slow', seq: last.seq! })
    await peer.frame(({ seq }) => seq === last.seq! + 1)
    peer.socket.terminate()
    await eventually(async () => (service.runs() === 0 ? true : undefined), 'the end of the run')
    const other = await connect(service.url)
    other.send(hello, { type: 'resume', run_id: 'slow', after_seq: 1 })
    assert.equal((await other.frame(({ type }) => type === 'rejected')).code, 'unknown_run')
    other.socket.terminate()
  })

  test('rejects a run beyond its number, and frames of runs of another connection do nothing', async () => {
    const [one, other] = [await connect(service.url), await connect(service.url)]
    one.send(hello, startOf('first', { say: 'a' }, { hang: true }), startOf('second', { hang: true }))
    await one.frame(({ type, run_id }) => type === 'accepted' && run_id === 'second')
    other.send(hello, startOf('third'), { type: 'cancel', run_id: 'first', reason: 'user' })
    const rejected = await other.frame(({ type }) => type === 'rejected')
    assert.equal(rejected.code, 'overloaded')
    assert.equal(service.runs(), 2)
    assert.ok(!one.frames.some(({ event }) => event === 'done'))
    one.send({ type: 'cancel', run_id: 'first', reason: 'user' })
    await one.frame(({ event }) => event === 'done')
    // Another run of a turn ends the earlier one.
    one.send({ type: 'ack', run_id: 'first', seq: 2 })
    await one.frame(({ type, run_id }) => type === 'closed' && run_id === 'first')
    other.send({ ...startOf('later', { hang: true }), chat_id: 'chat of second' })
    assert.equal(
      (await one.frame(({ run_id, type }) => type === 'closed' && run_id === 'second')).reason,
      'superseded',
    )
    one.socket.terminate()
    other.socket.terminate()
    await eventually(async () => (service.runs() === 0 ? true : undefined), 'the end of the runs')
  })
})

describe('a gateway', () => {
  test('takes no further question for a thread whose answers are too long to be read at once', async () => {
    const user = await app.user()
    const [meta] = await user.ask(script({ say: 'a' }))
    const { chat_id, thread_id } = meta!.data as { chat_id: string; thread_id: string }
    const fill = (characters: number) =>
      app.db.query(`update chat_turn set answer = repeat('x', ${characters}) where chat_id = '${chat_id}'`)
    const more = async () => {
      const options = { method: 'POST', headers: { ...bearer(user), 'content-type': 'application/json' } }
      const body = JSON.stringify({ query: script({ say: 'b' }), thread_id })
      const response = await fetch(`${app.url}/v1/chat`, { ...options, body })
      await response.text()
      return response.status
    }
    await fill(1_000_000)
    assert.equal(await more(), 200)
    await fill(4_194_304)
    assert.equal(await more(), 409)
  })

  let app: ChatApp
  let service: Awaited<ReturnType<typeof restartableService>>
  let proxy: Awaited<ReturnType<typeof frameProxy>>
  before(async () => {
    service = await restartableService()
    proxy = await frameProxy(service.url)
    app = await openChatApp({ count: 1, env: { AGENT_URL: proxy.url, AGENT_KEY: agentKey } })
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await service?.[Symbol.asyncDispose]()
  })
  const errorOf = (events: SentEvent[]) => {
    assert.equal(events.filter(isEnd).length, 1)
    return (events.at(-1)!.data as { code?: string }).code
  }
  /** Each event of the service as the given frames. */
  const asking = async (change: (frame: Frame) => Frame[], ...lines: Line[]) => {
    const pass: Pass = (frame, direction) =>
      direction === 'to-gateway' && frame.type === 'event' ? change(frame) : 'pass'
    proxy.use(pass)
    const user = await app.user()
    return user.ask(script(...lines)).finally(() => proxy.use())
  }

  test('ends the run of a service that leaves out, repeats at will, or sends what has another form', async () => {
    const cases: [string, (frame: Frame) => Frame[]][] = [
      ['a gap', (frame) => [{ ...frame, seq: frame.seq! + 1 }]],
      ['another form', (frame) => [{ ...frame, data: { text: 7 } }]],
      [
        'more than the window',
        (frame) => Array.from({ length: windowMax.events + 1 }, (_, at) => ({ ...frame, seq: at + 1 })),
      ],
      [
        'more requests than it may have open',
        (frame) =>
          Array.from({ length: 40 }, (_, at) => ({
            ...frame,
            seq: at + 1,
            event: 'note_get',
            data: { name: `n${at}` },
          })),
      ],
      [
        'a note that nobody asked for',
        (frame) => [{ ...frame, event: 'note_put', data: { name: 'n', note: {} } }],
      ],
      [
        'a part of a file out of order',
        (frame) => [
          {
            ...frame,
            event: 'file',
            data: { name: 'a', content_type: 'text/plain', size: 1, part: 2, parts: 2, base64: 'AA==' },
          },
        ],
      ],
    ]
    for (const [name, change] of cases)
      assert.equal(errorOf(await asking(change, { say: 'a' })), 'upstream_changed', name)
    const repeated = await asking((frame) => [frame, frame], { say: 'a' }, { say: 'b' })
    assert.equal((repeated.at(-2)!.data as { text: string }).text, 'ab')
  })

  test('makes no call for a run of another turn, and none that its user may not make', async () => {
    const call = (frame: Frame, name: string, args: object = {}) => ({
      ...frame,
      event: 'tool_call',
      data: { id: 'call', name, arguments: args },
    })
    const foreign = await asking((frame) => [{ ...call(frame, 'credits_packs'), run_id: 'another' }, frame], {
      say: 'a',
    })
    assert.ok(!foreign.some(({ event }) => event === 'tool_call'))
    for (const name of ['auth_token', 'policy_update', 'chat_decide', 'no_such_tool']) {
      const isFirst = (frame: Frame) => frame.seq === 1
      const events = await asking(
        (frame) => (isFirst(frame) ? [call(frame, name)] : [{ ...frame }]),
        { say: 'a' },
        { say: 'b' },
      )
      const answered = events.find(({ event }) => event === 'tool_response')
      assert.equal((answered?.data as { type?: string } | undefined)?.type, 'error', name)
    }
    // Arguments are stored and sent to every reader, whatever the call is for.
    const bulky = { text: 'x'.repeat(100_000) }
    const large = await asking(
      (frame) => (frame.seq === 1 ? [call(frame, 'no_such_tool', bulky)] : [frame]),
      { say: 'a' },
      { say: 'b' },
    )
    assert.ok(!large.some(({ event }) => event === 'tool_call'))
    assert.equal(large.at(-1)!.event, 'done')
    // The kill switch asks for the words of the user, whatever a service says.
    const killed = await asking(
      (frame) => (frame.seq === 1 ? [call(frame, 'policy_kill', { on: true })] : [frame]),
      { say: 'a' },
      { say: 'b' },
    )
    const answered = killed.find(({ event }) => event === 'tool_response')!
    const { data } = answered.data as { data: { output: { code?: string } } }
    assert.equal(data.output.code, 'policy_denied')
  })
})
