/** One user with a thousand connections, a thousand bad tokens a minute and all its streams affects no other user. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Agent, type IncomingMessage, request as open } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { bearer, freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person } from '../journeys/users.ts'

const connectionsHeld = 1_000
const badTokensPerSecond = 1_000 / 60
const connectionsMax = 400
const readsPerRound = 200
const roundsMax = 4
/** Below this a ratio depends more on the machine than on the gateway. */
const floorMs = 25

let gateway: Awaited<ReturnType<typeof freshGateway>>
let victim: Person
let attacker: Person
let neighbour: Person
let position_id: string
before(async () => {
  gateway = await freshGateway({ CONNECTIONS_MAX: String(connectionsMax) })
  ;[victim, attacker, neighbour] = (await Promise.all(
    [1, 2, 3].map(() => createFundedPerson(gateway.url)),
  )) as [Person, Person, Person]
  const { body } = await victim.deposit('20')
  assert.equal(body.status, 'completed', JSON.stringify(body))
  position_id = body.result.position_id
})
after(() => gateway[Symbol.asyncDispose]())

type Answered = { status: number; body: Record<string, unknown>; ms: number }

/** Sends from an address of the loopback network, so that the gateway sees different addresses. */
function createClient(localAddress: string, sockets = 4) {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets })
  const { hostname, port } = new URL(gateway.url)
  const send = (route: string, token: string, onStream?: (answer: IncomingMessage) => void) =>
    new Promise<Answered>((resolve, reject) => {
      const [method, path] = route.split(' ')
      const startedMs = performance.now()
      const headers = { authorization: `Bearer ${token}` }
      const asked = open({ hostname, port, method, path, agent, localAddress, headers })
      asked.once('error', reject)
      asked.once('response', (answer) => {
        const { statusCode: status = 0 } = answer
        if (onStream && status === 200) {
          onStream(answer)
          resolve({ status, body: {}, ms: performance.now() - startedMs })
          return
        }
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.once('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status, body: JSON.parse(text), ms: performance.now() - startedMs })
        })
      })
      asked.end()
    })
  return { send, [Symbol.dispose]: () => agent.destroy() }
}

const p99 = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!

async function reads(person: Person, from: string): Promise<number> {
  using client = createClient(from, 1)
  const times: number[] = []
  for (let turn = 0; turn < readsPerRound; turn++) {
    const { status, ms, body } = await client.send('GET /v1/tasks?limit=1', person.token)
    assert.equal(status, 200, JSON.stringify(body))
    times.push(ms)
  }
  return p99(times)
}

type Attack = { badStatuses: number[]; extraStream: Answered } & AsyncDisposable

/** All attacks at once, until disposed: connections that reconnect when they are closed, guesses, streams. */
async function attack(from: string): Promise<Attack> {
  const { hostname, port } = new URL(gateway.url)
  const sockets = new Set<Socket>()
  let isOver = false
  const holdConnection = () => {
    if (isOver) return
    const socket = connect({ host: hostname, port: Number(port), localAddress: from })
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => {
      sockets.delete(socket)
      setTimeout(holdConnection, 1_000)
    })
    // An incomplete request head: the connection is neither used nor idle.
    socket.write(`GET /v1/tasks HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${attacker.token}\r\n`)
  }
  for (let count = 0; count < connectionsHeld; count++) holdConnection()

  const client = createClient(from, 64)
  const badStatuses: number[] = []
  const guesses = setInterval(() => {
    const token = `agt_${randomBytes(32).toString('base64url')}`
    client.send('GET /v1/tasks', token).then(
      ({ status }) => badStatuses.push(status),
      () => undefined,
    )
  }, 1_000 / badTokensPerSecond)
  const streams: IncomingMessage[] = []
  const follow = async (): Promise<Answered> => {
    for (;;) {
      try {
        return await client.send('GET /v1/notifications/stream', attacker.token, (answer) => {
          answer.on('error', () => undefined)
          answer.resume()
          streams.push(answer)
        })
      } catch {
        // Connections of the same address displaced this one: it reconnects.
      }
    }
  }
  for (let count = 0; count < 10; count++) await follow()
  const extraStream = await follow()
  return {
    badStatuses,
    extraStream,
    async [Symbol.asyncDispose]() {
      isOver = true
      clearInterval(guesses)
      for (const stream of streams) stream.destroy()
      for (const socket of sockets) socket.destroy()
      client[Symbol.dispose]()
    },
  }
}

test("another user's reads stay within three times the quiet duration, and its exits are never rejected", async () => {
  let messages = ''
  for (let round = 1; ; round++) {
    const quietMs = await reads(victim, '127.0.0.1')
    await using load = await attack('127.0.0.2')
    const busyMs = await reads(victim, '127.0.0.1')
    messages = `p99 ${quietMs.toFixed(1)} ms quiet, ${busyMs.toFixed(1)} ms under attack`
    const { status, body } = load.extraStream
    assert.deepEqual([status, body.budget, body.owner], [429, 'open_streams', 'user'])
    for (const amount_usdc of ['1', '1']) await exits({ amount_usdc })
    if (busyMs <= Math.max(3 * quietMs, floorMs)) break
    assert.ok(round < roundsMax, messages)
  }
  await exits({})
  console.log(`fairness: ${messages}`)
})

async function exits(body: object): Promise<void> {
  const { status, body: task } = await victim.withdraw({ position_id, ...body })
  assert.equal(`${status} ${task.status}`, '200 completed', JSON.stringify(task))
}

test('a valid token from the address of the guesses is admitted', async () => {
  await using load = await attack('127.0.0.2')
  using client = createClient('127.0.0.2', 4)
  const until = performance.now() + 60_000
  while (!load.badStatuses.includes(429)) {
    const guessed = await client
      .send('GET /v1/tasks', `agt_${randomBytes(32).toString('base64url')}`)
      .catch(() => undefined)
    if (guessed) load.badStatuses.push(guessed.status)
    assert.ok(performance.now() < until, 'the budget of failures is used up')
  }
  for (let turn = 0; turn < 20; turn++) {
    const { status } = await retry(() => client.send('GET /v1/tasks?limit=1', neighbour.token))
    assert.equal(status, 200)
  }
  const killed = await fetch(`${gateway.url}/v1/kill`, {
    method: 'POST',
    headers: { ...bearer(neighbour), 'content-type': 'application/json' },
    body: '{"on":true}',
  })
  assert.equal(killed.status, 200)
})

/** The connection may have been closed in favour of others of its address; a rejection is another matter. */
async function retry<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await send()
    } catch (error) {
      if (attempt === 20) throw error
    }
  }
}
