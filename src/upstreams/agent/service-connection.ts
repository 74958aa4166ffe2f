import { setTimeout as pause } from 'node:timers/promises'
import type { RawData, WebSocket } from 'ws'
import { backoffMs, withJitter } from '#kernel/async/backoff.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import {
  agentPath,
  agentProtocol,
  frameBytesMax,
  type GatewayFrame,
  type liveness,
  ProtocolError,
  type ReadFrame,
  readServiceFrames,
  type ServiceFrame,
} from '#kernel/wire/agent-protocol.ts'
import { createLines, notSentBytesMax, toLine, watchLiveness } from '#kernel/wire/agent-socket.ts'

/** The connection to the agent service, which all runs of this instance share; the first run opens it. */

export type AgentAddress = { url: string; key: string }
export type LinkDeps = {
  /** Resolves to the address of the agent service; a service that this process starts must listen first. */
  address: () => Promise<AgentAddress>
  /** The name and the release of this gateway instance, as the frame `hello` states them to the agent service. */
  gateway: string
  version: string
  random: Pick<Random, 'fraction'>
  log: Log
  liveness?: typeof liveness
}
export type Receiver = {
  onFrame(read: ReadFrame<ServiceFrame>): void
  onLost(): void
}
export type Attached = { send(frame: GatewayFrame): void; detach(): void }
export type Link = {
  /** Attaches a run. All callers share one attempt to connect, which waits longer after each failure. */
  attach(runId: string, receiver: Receiver): Promise<Attached>
} & AsyncDisposable

/** The service refused the connection with 401, 403 or 404: the settings are wrong, so a run does not try again. */
export class ServiceRefused extends Fault {}

const refusedStatus = [401, 403, 404]
const reconnect = { firstMs: 100, maxMs: 5_000 }
const openMs = 5_000
const closeMs = 1_000

type Connection = {
  runsMax: number
  receivers: Map<string, Receiver>
  send(frame: GatewayFrame): void
  socket: WebSocket
}

export function createLink(deps: LinkDeps): Link {
  let current: Promise<Connection> | undefined
  let failures = 0
  let isClosed = false

  const connect = async (): Promise<Connection> => {
    if (failures > 0) {
      const waitMs = withJitter(backoffMs(reconnect, failures - 1), deps.random)
      await pause(waitMs, undefined, { ref: false })
    }
    if (isClosed) throw unavailable('This instance stops')
    try {
      const connection = await open(deps)
      failures = 0
      return connection
    } catch (error) {
      failures += 1
      if (failures === 1) deps.log.warn({ error }, 'no connection to the agent service')
      if (error instanceof ServiceRefused) throw error
      throw unavailable('The agent service cannot be reached', error)
    }
  }
  const connectOnce = (): Promise<Connection> => {
    if (current) return current
    const mine = connect()
    const forget = () => {
      if (current === mine) current = undefined
    }
    mine.then(({ socket }) => socket.once('close', forget), forget)
    current = mine
    return mine
  }
  return {
    async attach(runId, receiver) {
      const { receivers, runsMax, send, socket } = await connectOnce()
      if (socket.readyState !== socket.OPEN) throw unavailable('The agent service has closed the connection')
      if (receivers.size >= runsMax) throw new Fault('overloaded', 'The agent service has no room')
      receivers.set(runId, receiver)
      return { send, detach: () => void receivers.delete(runId) }
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      const connection = await current?.catch(() => undefined)
      if (!connection) return
      const { socket } = connection
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.close(1001)
      await Promise.race([closed, pause(closeMs, undefined, { ref: false })])
      socket.terminate()
    },
  }
}

const unavailable = (sentence: string, cause?: unknown) => new Fault('unavailable', sentence, { cause })

/** Opens the connection, and resolves once the service has sent its `hello`. */
async function open(deps: LinkDeps): Promise<Connection> {
  const { gateway, version, log } = deps
  // The library `ws` is loaded by the first turn, because no start needs it.
  const [{ url, key }, ws] = await Promise.all([deps.address(), import('ws')])
  const socket: WebSocket = new ws.WebSocket(`${url.replace(/^http/, 'ws')}${agentPath}`, agentProtocol, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
    maxPayload: frameBytesMax,
    handshakeTimeout: openMs,
    followRedirects: false,
  })
  const lines = createLines((message) => {
    if (socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount <= notSentBytesMax) return socket.send(message)
    log.warn({}, 'the agent service does not read what it asks for: the connection is cut')
    socket.terminate()
  })
  const receivers = new Map<string, Receiver>()
  const opened = Promise.withResolvers<Connection>()
  const timer = setTimeout(() => fail(new Error('no hello in time')), openMs)
  const live = watchLiveness(socket, deps.liveness)
  const fail = (error: unknown) => {
    opened.reject(error)
    socket.terminate()
  }
  const send = (frame: GatewayFrame) => lines.add(toLine(frame))
  const receive = (read: ReadFrame<ServiceFrame>) => {
    const { frame } = read
    if (frame.type === 'hello') return opened.resolve({ runsMax: frame.runs_max, receivers, send, socket })
    receivers.get(frame.run_id)?.onFrame(read)
  }
  socket.on('open', () => send({ type: 'hello', gateway, version }))
  socket.on('ping', live.received)
  socket.on('pong', live.received)
  socket.on('message', (data: RawData, isBinary) => {
    live.received()
    try {
      if (isBinary) throw new ProtocolError('a message is text')
      for (const read of readServiceFrames(data.toString())) receive(read)
    } catch (error) {
      log.error({ error }, 'the agent service does not follow the protocol')
      fail(error)
    }
  })
  socket.on('unexpected-response', (request, { statusCode = 0 }) => {
    request.destroy()
    const sentence = `The agent service answers ${statusCode}`
    fail(
      refusedStatus.includes(statusCode) ? new ServiceRefused('unavailable', sentence) : new Error(sentence),
    )
  })
  socket.on('error', fail)
  socket.on('close', (code) => {
    clearTimeout(timer)
    live[Symbol.dispose]()
    opened.reject(new Error(`the connection was closed with ${code}`))
    for (const receiver of [...receivers.values()]) receiver.onLost()
  })
  opened.promise.then(
    () => clearTimeout(timer),
    () => undefined,
  )
  return opened.promise
}
