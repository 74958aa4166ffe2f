import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { foreignOriginMessage, isForeignOrigin } from '#world/origin-check.ts'
import type { Chain } from './chain.ts'
import { internalRoutes } from './internal-routes.ts'
import { readJson, writeJson } from './json.ts'
import { accountMethods } from './methods-accounts.ts'
import { clusterMethods } from './methods-cluster.ts'
import { historyMethods } from './methods-history.ts'
import { tokenMethods } from './methods-tokens.ts'
import { transactionMethods } from './methods-transactions.ts'
import { commitmentOf, countOf, type Params } from './params.ts'
import { RpcError } from './rpc-error.ts'
import { openStream } from './stream.ts'

const bodyBytesMax = 1_048_576
const batchMax = 100
const requestTimeoutMs = 10_000
const connectionsMax = 1_024

type Method = (params: Params) => unknown
type RpcContext = { methods: ReadonlyMap<string, Method>; slotAt: Chain['slotAt'] }

const errorShape = (error: unknown) => {
  if (!(error instanceof RpcError)) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
    return { code: -32603, message: 'Internal error' }
  }
  const { code, message, data } = error
  return data === undefined ? { code, message } : { code, data, message }
}

/** A client that has seen a slot may require an answer at that slot or later. */
const assertMinContextSlot = (params: Params, slotAt: Chain['slotAt']): void => {
  const config = params.at(-1)
  if (typeof config !== 'object' || config === null || !('minContextSlot' in config)) return
  const { minContextSlot, commitment } = config as Record<string, unknown>
  if (minContextSlot === undefined || minContextSlot === null) return
  const contextSlot = slotAt(commitmentOf({ commitment }))
  if (countOf(minContextSlot, 'minContextSlot', Number.MAX_SAFE_INTEGER) > contextSlot)
    throw new RpcError(-32016, 'Minimum context slot has not been reached', { contextSlot })
}

/** Number of slots that this reader's node lags; the proxy before this server sets it. */
const lagHeader = 'x-world-lag-slots'

const lagOf = ({ headers }: IncomingMessage): number => {
  const { [lagHeader]: count } = headers
  return typeof count === 'string' && /^\d{1,3}$/.test(count) ? Number(count) : 0
}

const answerCall = ({ methods, slotAt }: RpcContext, call: unknown) => {
  const request = (typeof call === 'object' && call !== null && !Array.isArray(call) ? call : {}) as Record<
    string,
    unknown
  >
  const { id: givenId, method: name, params = [] } = request
  const id =
    typeof givenId === 'string' || typeof givenId === 'number' || typeof givenId === 'bigint' ? givenId : null
  try {
    if (request.jsonrpc !== '2.0' || typeof name !== 'string') throw new RpcError(-32600, 'Invalid request')
    const method = methods.get(name)
    if (method === undefined) throw new RpcError(-32601, 'Method not found')
    if (!Array.isArray(params)) throw new RpcError(-32602, '`params` should be an array')
    assertMinContextSlot(params, slotAt)
    return { id, jsonrpc: '2.0', result: method(params) }
  } catch (error) {
    return { error: errorShape(error), id, jsonrpc: '2.0' }
  }
}

const errorReply = (code: number, message: string) => ({ error: { code, message }, id: null, jsonrpc: '2.0' })

const answerBody = (context: RpcContext, text: string): unknown => {
  let body: unknown
  try {
    body = readJson(text)
  } catch {
    return errorReply(-32700, 'Parse error')
  }
  if (!Array.isArray(body)) return answerCall(context, body)
  if (body.length === 0) return errorReply(-32600, 'Invalid request')
  if (body.length > batchMax)
    return errorReply(-32600, `Batch of ${body.length} calls is too large; max ${batchMax}`)
  return body.map((call) => answerCall(context, call))
}

/** Undefined when the body is larger than any valid call. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > bodyBytesMax) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

const reply = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(writeJson(body))
}

/** One loopback port for the JSON-RPC of clients and for the few routes that only the world uses. */
export const serve = async (chain: Chain, port: number): Promise<{ port: number; server: Server }> => {
  const methods: ReadonlyMap<string, Method> = new Map(
    Object.entries<Method>({
      ...clusterMethods(chain),
      ...historyMethods(chain),
      ...accountMethods(chain),
      ...tokenMethods(chain),
      ...transactionMethods(chain),
    }),
  )
  const internal = internalRoutes(chain)

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (isForeignOrigin(request)) return reply(response, 403, { detail: foreignOriginMessage })
    const path = (request.url ?? '/').split('?')[0]
    const text = await readBody(request)
    if (text === undefined) {
      response.setHeader('connection', 'close')
      return reply(response, 413, errorReply(-32600, `Request is larger than ${bodyBytesMax} bytes`))
    }
    const route = internal.get(`${request.method} ${path}`)
    if (route) {
      const { status, body } = route(text)
      return reply(response, status, body)
    }
    if (path !== '/') return reply(response, 404, { detail: 'no such path' })
    if (request.method !== 'POST') return reply(response, 405, { detail: 'JSON-RPC is spoken by POST' })
    const context = { methods, slotAt: chain.slotAt }
    const answer = chain.readLagged(lagOf(request), () => answerBody(context, text))
    reply(response, 200, answer)
  }

  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  server.maxConnections = connectionsMax
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  openStream(server, chain)
  return { port: (server.address() as AddressInfo).port, server }
}
