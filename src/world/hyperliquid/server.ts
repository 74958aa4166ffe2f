import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { foreignRefusal, isForeign } from '#world/foreign.ts'
import type { Engine } from './engine.ts'
import type { Fault, Faults } from './faults.ts'
import type { Gateway } from './gateway.ts'
import { Malformed } from './schema.ts'
import { type Budget, exchangeWeight, infoWeight } from './weights.ts'

const largestBody = 2_000_000

const json = { 'content-type': 'application/json' } as const
const plain = { 'content-type': 'text/plain; charset=utf-8' } as const

const readBody = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let size = 0
    request.on('data', (part: Buffer) => {
      size += part.length
      if (size > largestBody) request.destroy()
      else parts.push(part)
    })
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')))
    request.on('error', reject)
  })

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new Malformed('Failed to parse the request body as JSON')
  }
}

type Door = 'info' | 'exchange'

const typeOf = (door: Door, body: unknown): string => {
  const at = door === 'info' ? body : (body as { action?: unknown } | null)?.action
  const type = (at as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' ? type : ''
}

const doorOf = (request: IncomingMessage): Door | undefined => {
  const path = request.url?.split('?')[0]
  return path === '/info' ? 'info' : path === '/exchange' ? 'exchange' : undefined
}

const answer = (
  response: ServerResponse,
  status: number,
  head: Record<string, string>,
  body: string,
): void => {
  if (response.destroyed) return
  response.writeHead(status, { ...head, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

type Needs = { engine: Engine; gateway: Gateway; faults: Faults; budget: Budget }

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** True when the request ends here. */
const spoil = async (
  struck: readonly Fault[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> => {
  for (const fault of struck) {
    if (fault.effect === 'latency') await wait(fault.latencyMs ?? 0)
    if (fault.effect === 'reset') {
      request.socket.resetAndDestroy()
      return true
    }
    if (fault.effect === 'status') {
      answer(response, fault.status ?? 503, json, 'null')
      return true
    }
  }
  return false
}

const serveDoor = async (
  { engine, gateway, faults, budget }: Needs,
  door: Door,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const body = parse(await readBody(request))
  const type = typeOf(door, body)
  const struck = faults.strike(door, type)
  if (struck.length > 0 && (await spoil(struck, request, response))) return
  const weight =
    door === 'info' ? infoWeight(type) : exchangeWeight((body as { action?: unknown } | null)?.action)
  if (!budget.take(request.socket.remoteAddress ?? '', weight, Date.now()))
    return answer(response, 429, json, 'null')
  const said = door === 'info' ? gateway.info(body) : gateway.exchange(body)
  const text = JSON.stringify(said)
  // Nothing is told before it is written down.
  engine.told(() => {
    if (struck.some(({ effect }) => effect === 'dropReply')) request.socket.resetAndDestroy()
    else answer(response, 200, json, text)
  })
}

export const serve = (needs: Needs): Server =>
  createServer((request, response) => {
    if (isForeign(request)) return answer(response, 403, plain, foreignRefusal)
    const door = doorOf(request)
    if (!door || request.method !== 'POST') {
      request.resume()
      return answer(response, door ? 405 : 404, plain, door ? 'Method Not Allowed' : 'Not Found')
    }
    serveDoor(needs, door, request, response).catch((error: unknown) => {
      if (error instanceof Malformed) answer(response, 422, plain, error.message)
      else {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
        answer(response, 500, json, 'null')
      }
    })
  })

export const listen = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
