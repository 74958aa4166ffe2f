/** The chat with its agent service on the wire, and a proxy between both that cuts the connection where a test says. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import { openAgentService } from '#agent/agent-service.ts'
import { createAnswererOf } from '#agent/create-answerer.ts'
import { type AgentEdge, type AgentEdgeDeps, openAgentEdge } from '#agent/door/agent-edge.ts'
import type { AnswererOf } from '#agent/door/turn-run.ts'
import { silentLog } from '#kernel/log.ts'
import { scriptedAnswerer } from './scripted-answerer.ts'

export const agentKey = randomBytes(32).toString('hex')
export type Frame = Record<string, unknown> & { type: string; run_id?: string; seq?: number }
export type Direction = 'to-service' | 'to-gateway'
/** What becomes of a frame: `cut` ends the connection before it passes. */
export type Pass = (frame: Frame, direction: Direction) => 'pass' | 'drop' | 'cut' | Frame[]

export const framesOf = (data: RawData): Frame[] =>
  data
    .toString()
    .split('\n')
    .map((line) => JSON.parse(line) as Frame)

/** A service that can be stopped and started again at the same address, without what it knew. */
export async function restartableService(options: Partial<AgentEdgeDeps> & { real?: boolean } = {}) {
  const { real = false, ...deps } = options
  const answererOf: AnswererOf = () => scriptedAnswerer
  const create = (): AgentEdge =>
    real
      ? openAgentService({ key: agentKey, log: silentLog, answererOf: createAnswererOf() })
      : openAgentEdge({
          key: agentKey,
          log: silentLog,
          answererOf,
          instance: 'test',
          version: '0',
          agents: ['ProAgent'],
          ...deps,
        })
  let service = create()
  const url = await service.listen({ host: '127.0.0.1', port: 0 })
  const port = Number(new URL(url).port)
  return {
    url,
    runs: () => service.runs(),
    async stop() {
      await service[Symbol.asyncDispose]()
    },
    async start() {
      service = create()
      await service.listen({ host: '127.0.0.1', port })
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
    },
  }
}

/** Between the gateway and the service, frame by frame. */
export async function frameProxy(target: string) {
  let pass: Pass = () => 'pass'
  const server = createServer()
  const sockets = new WebSocketServer({ server, handleProtocols: ([first]) => first ?? false })
  const pairs = new Set<{ end(): void }>()
  sockets.on('connection', (gateway, request) => {
    const service = new WebSocket(`${target.replace('http', 'ws')}${request.url}`, gateway.protocol, {
      headers: { authorization: request.headers.authorization ?? '' },
    })
    const early: string[] = []
    const end = () => {
      pairs.delete(pair)
      service.terminate()
      gateway.terminate()
    }
    const pair = { end }
    pairs.add(pair)
    const relay = (to: WebSocket, direction: Direction) => (data: RawData) => {
      for (const frame of framesOf(data)) {
        const verdict = pass(frame, direction)
        if (verdict === 'cut') return end()
        if (verdict === 'drop') continue
        for (const each of verdict === 'pass' ? [frame] : verdict) {
          if (to.readyState === WebSocket.CONNECTING) early.push(JSON.stringify(each))
          else if (to.readyState === WebSocket.OPEN) to.send(JSON.stringify(each))
        }
      }
    }
    service.on('open', () => {
      for (const line of early.splice(0)) service.send(line)
    })
    gateway.on('message', relay(service, 'to-service'))
    service.on('message', relay(gateway, 'to-gateway'))
    for (const socket of [service, gateway]) for (const event of ['close', 'error']) socket.on(event, end)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => pairs.size,
    use(next: Pass = () => 'pass') {
      pass = next
    },
    cut() {
      for (const { end } of [...pairs]) end()
    },
    async [Symbol.asyncDispose]() {
      for (const { end } of [...pairs]) end()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
