import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import {
  agentPath,
  agentProtocol,
  frameBytesMax,
  type GatewayFrame,
  type liveness,
  ProtocolError,
  readGatewayFrames,
  runsPerConnectionMax,
} from '#kernel/wire/agent-protocol.ts'
import { createLines, notSentBytesMax, toLine, watchLiveness } from '#kernel/wire/agent-socket.ts'
import type { Peer, RunDeps } from './turn-run.ts'
import { createRuns, type Runs } from './turn-runs.ts'

/**
 * The WebSocket server to which gateways connect to have their chats answered. It has no database and no wallet key.
 */

export type AgentEdgeDeps = RunDeps & {
  key: string
  instance: string
  version: string
  agents: readonly string[]
  runsMax?: number
  runsPerConnection?: number
  liveness?: typeof liveness
}
export type AgentEdge = {
  listen(at: { host: string; port: number }): Promise<string>
  runs(): number
} & AsyncDisposable

const runsMaxDefault = 4_096
const connectionsMax = 256
const helloMs = 5_000
const closeMs = 2_000
const policyViolation = 1_008

export function openAgentEdge(deps: AgentEdgeDeps): AgentEdge {
  const runs = createRuns({ ...deps, runsMax: deps.runsMax ?? runsMaxDefault })
  const isAllowed = createKeyCheck(deps.key)
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: frameBytesMax,
    handleProtocols: (offered) => (offered.has(agentProtocol) ? agentProtocol : false),
  })
  const server = createServer((request, response) => {
    const isHealth = request.url === '/healthz' && request.method === 'GET'
    response.writeHead(isHealth ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isHealth ? { status: 'ok', runs: runs.count() } : { code: 'not_found' }))
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    if (request.url !== agentPath) return refuse(socket, '404 Not Found')
    if (!isAllowed(request.headers.authorization)) return refuse(socket, '401 Unauthorized')
    if (sockets.clients.size >= connectionsMax) return refuse(socket, '503 Service Unavailable')
    sockets.handleUpgrade(request, socket, head, (opened) => serve(opened, runs, deps))
  })
  return {
    runs: runs.count,
    async listen({ host, port }) {
      server.listen(port, host)
      await once(server, 'listening')
      return `http://${host}:${(server.address() as AddressInfo).port}`
    },
    async [Symbol.asyncDispose]() {
      runs.close()
      const closed = server.listening ? once(server, 'close') : Promise.resolve()
      server.close()
      for (const socket of sockets.clients) socket.close(1_001)
      const timer = setTimeout(() => {
        for (const socket of sockets.clients) socket.terminate()
        server.closeAllConnections()
      }, closeMs)
      server.closeIdleConnections()
      await closed
      clearTimeout(timer)
    },
  }
}

function refuse(socket: Duplex, status: string): void {
  // The HTTP server no longer times this socket out, and its client may never close it, so it is destroyed once the
  // refusal is sent.
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** Digests all have one length, so the comparison always takes the same time. */
function createKeyCheck(key: string): (header: string | undefined) => boolean {
  const wanted = digest(`Bearer ${key}`)
  return (header) => timingSafeEqual(digest(header ?? ''), wanted)
}

function serve(socket: WebSocket, runs: Runs, deps: AgentEdgeDeps): void {
  const { log, runsPerConnection = runsPerConnectionMax } = deps
  const lines = createLines((message) => {
    if (socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > notSentBytesMax) socket.terminate()
    else socket.send(message)
  })
  const peer: Peer = { send: lines.add }
  const runIds = new Set<string>()
  const live = watchLiveness(socket, deps.liveness)
  let hasGreeted = false
  const timer = setTimeout(() => socket.terminate(), helloMs)
  const receive = (frame: GatewayFrame): void => {
    if (frame.type === 'hello') {
      hasGreeted = true
      clearTimeout(timer)
      const { instance, version, agents } = deps
      const facts = { instance, version, agents, runs_max: runsPerConnection }
      peer.send(toLine({ type: 'hello', ...facts }))
      return
    }
    if (!hasGreeted) throw new ProtocolError('the first frame is hello')
    if (frame.type === 'start' || frame.type === 'resume') {
      for (const id of runIds) if (!runs.of(id, peer)) runIds.delete(id)
      if (frame.type === 'start') runs.start(frame, peer, runIds.size >= runsPerConnection)
      else runs.resume(frame, peer)
      runIds.add(frame.run_id)
      return
    }
    const run = runs.of(frame.run_id, peer)
    if (frame.type === 'ack') run?.ack(frame.seq)
    if (frame.type === 'cancel') run?.cancel(frame.reason)
    if (frame.type === 'tool_response') run?.respond(frame)
  }
  socket.on('ping', live.received)
  socket.on('pong', live.received)
  socket.on('message', (data: RawData, isBinary) => {
    live.received()
    try {
      if (isBinary) throw new ProtocolError('a message is text')
      for (const { frame } of readGatewayFrames(data.toString())) receive(frame)
    } catch (error) {
      const isExpected = error instanceof ProtocolError
      log.warn({ error }, 'a gateway does not follow the protocol of the agent service')
      socket.close(policyViolation, isExpected ? error.message : 'internal')
    }
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', () => {
    clearTimeout(timer)
    live[Symbol.dispose]()
    runs.detach(peer)
  })
}
