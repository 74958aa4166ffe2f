/** One side of the agent protocol that wants to stop the other, or another gateway of the same service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { describe, test } from 'node:test'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import { createAnswererOf } from '#agent/create-answerer.ts'
import type { AnswererOf } from '#agent/door/turn-run.ts'
import { versionOf } from '#grammar/asset-and-chain-names.ts'
import { systemClock } from '#kernel/clock.ts'
import { systemRandom } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { agentPath, agentProtocol } from '#kernel/wire/agent-protocol.ts'
import { createAgentClient } from '#upstreams/agent/agent-client.ts'
import { createLink } from '#upstreams/agent/service-connection.ts'
import { eventually } from '../harness/gateway.ts'
import { universe } from '../proof/agent/universe.ts'
import { agentKey, type Frame, framesOf, restartableService } from './agent-app.ts'

async function connect(url: string) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${agentPath}`, agentProtocol, {
    headers: { authorization: `Bearer ${agentKey}` },
  })
  const frames: Frame[] = []
  socket.on('message', (data: RawData) => {
    for (const line of data.toString().split('\n')) frames.push(JSON.parse(line) as Frame)
  })
  await once(socket, 'open')
  const send = (...sent: object[]) => socket.send(sent.map((frame) => JSON.stringify(frame)).join('\n'))
  send({ type: 'hello', gateway: 'test', version: '0' })
  return {
    send,
    frames,
    frame: (isWanted: (frame: Frame) => boolean) =>
      eventually(async () => frames.find(isWanted), 'the frame'),
    [Symbol.dispose]: () => socket.terminate(),
  }
}
const startOf = (runId: string, query: string, namesVersion = 'none') => ({
  type: 'start',
  run_id: runId,
  chat_id: `chat of ${runId}`,
  agent: 'ProAgent',
  query,
  asked_at: new Date().toISOString(),
  said: '',
  memory: null,
  credits_max: 1,
  ms_max: 60_000,
  names_version: namesVersion,
})

describe('a service', () => {
  test('holds no connection that it has refused', async () => {
    await using service = await restartableService()
    const { hostname, port } = new URL(service.url)
    const socket = connectTcp({ host: hostname, port: Number(port), allowHalfOpen: true })
    using _client = { [Symbol.dispose]: () => socket.destroy() }
    socket.on('error', () => undefined)
    socket.write(
      `GET ${agentPath} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    )
    socket.resume()
    await once(socket, 'end')
    // The other side is gone once what is written to it is reset.
    await eventually(async () => socket.destroyed || void socket.write('x'), 'the end of the connection')
  })

  test('ends a run whose answerer writes more than is read, and goes on', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const answererOf: AnswererOf = () => ({
      async run(_turn, _tools, emit) {
        for (let count = 0; ; count++) emit.planning('plan_step', { id: String(count), text: '' })
      },
    })
    await using service = await restartableService({ answererOf })
    using peer = await connect(service.url)
    peer.send(startOf('much', 'hello'))
    await peer.frame(({ type }) => type === 'closed')
    assert.equal(service.runs(), 0)
    process.off('unhandledRejection', note)
    assert.deepEqual(unhandled, [])
  })

  test('waits for no gateway to name things for another, and believes none', async () => {
    await using service = await restartableService({ answererOf: createAnswererOf() })
    const version = versionOf(universe)
    const namesOf = async (peer: Awaited<ReturnType<typeof connect>>, runId: string) =>
      (await peer.frame(({ event, run_id }) => event === 'names' && run_id === runId)).seq
    const answer = (peer: Awaited<ReturnType<typeof connect>>, runId: string, seq: number, output: object) =>
      peer.send({ type: 'tool_response', run_id: runId, seq, ok: true, output })
    using silent = await connect(service.url)
    silent.send(startOf('silent', 'what can you do?', version))
    await namesOf(silent, 'silent')
    using lying = await connect(service.url)
    lying.send(startOf('lying', 'what can you do?', version))
    using honest = await connect(service.url)
    honest.send(startOf('honest', 'what can you do?', version))
    const false_ = { version, chains: [], assets: [], next: null }
    answer(lying, 'lying', (await namesOf(lying, 'lying'))!, false_)
    answer(honest, 'honest', (await namesOf(honest, 'honest'))!, { ...false_, ...universe })
    await honest.frame(({ event }) => event === 'done')
    const wrong = await lying.frame(({ event }) => event === 'error')
    assert.equal((wrong.data as { code: string }).code, 'upstream_changed')
  })
})

describe('a gateway', () => {
  test('leaves a service that does not read what it is sent', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => agentProtocol })
    server.on('connection', (socket) => {
      socket.send(JSON.stringify({ type: 'hello', instance: 's', version: '0', agents: [], runs_max: 9 }))
      socket.pause()
    })
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    await using link = createLink({
      address: async () => ({ url: `http://127.0.0.1:${port}`, key: agentKey }),
      gateway: 'test',
      version: '0',
      random: systemRandom,
      log: silentLog,
    })
    let isLost = false
    const { send } = await link.attach('run', {
      onFrame: () => undefined,
      onLost() {
        isLost = true
      },
    })
    const output = 'x'.repeat(1_000_000)
    for (let seq = 1; seq <= 120 && !isLost; seq++) {
      send({ type: 'tool_response', run_id: 'run', seq, ok: true, output })
      await new Promise((resolve) => setImmediate(resolve))
    }
    const found = isLost
    for (const socket of server.clients) socket.terminate()
    server.close()
    assert.ok(found)
  })

  test('waits for a service that is full no longer than a start may take', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => agentProtocol })
    server.on('connection', (socket) => {
      socket.send(JSON.stringify({ type: 'hello', instance: 's', version: '0', agents: [], runs_max: 9 }))
      socket.on('message', (data: RawData) => {
        for (const { type, run_id } of framesOf(data))
          if (type === 'start')
            socket.send(
              JSON.stringify({
                type: 'rejected',
                run_id,
                code: 'overloaded',
                message: 'full',
                retry_after_ms: 60_000,
              }),
            )
      })
    })
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    await using client = createAgentClient({
      address: async () => ({ url: `http://127.0.0.1:${port}`, key: agentKey }),
      gateway: 'test',
      version: '0',
      turnMsMax: 60_000,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
    })
    const turn = {
      chatId: 'full',
      agent: 'ProAgent',
      query: 'hello',
      said: '',
      memory: null,
      creditsMax: 1,
    } as const
    const names = { version: 'none', chains: [], assets: [] }
    const unused = async (): Promise<never> => assert.fail('no run was accepted')
    const tools = { call: unused, note: unused, describe: unused, history: unused, publish: unused }
    const emit = { planning: () => undefined, chunk: unused }
    await assert.rejects(
      client.run({ turn: { ...turn, askedAt: new Date() }, names }, tools, emit, AbortSignal.timeout(20_000)),
      { code: 'unavailable', message: 'The agent service refuses: full' },
    )
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
})
