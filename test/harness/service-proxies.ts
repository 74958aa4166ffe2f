/** Proxies before the services of the world, whose answers can be replaced by those that the live services give. */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

export type RpcCall = { jsonrpc: string; id: unknown; method: string; params: unknown[] }
export type RpcReply = {
  jsonrpc: string
  id: unknown
  result?: unknown
  error?: { code: number; message: string }
}
export type NodeChanges = {
  /** A call before it is forwarded. */
  call?: (call: RpcCall) => RpcCall
  /** The answer to one call. */
  reply?: (call: RpcCall, reply: RpcReply) => RpcReply
}
type ServiceAnswer = {
  fees?: { relayer?: { currency: object } }
  details?: { currencyOut?: { amount: string; minimumAmount: string } }
}
/** The answer of the service as the caller gets it; undefined: unchanged. */
export type ApiChange = (path: string, truth: ServiceAnswer) => { status?: number; body: unknown } | undefined

const bodyOf = async (request: IncomingMessage) => Buffer.concat(await request.toArray())
const json = { 'content-type': 'application/json' }

async function serve(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Before a node of a chain. */
export async function nodeProxy(target: string) {
  let changes: NodeChanges = {}
  const answer = async (body: Buffer): Promise<string> => {
    const { call: changeCall = (call) => call, reply } = changes
    const parsed = JSON.parse(body.toString()) as RpcCall | RpcCall[]
    const calls = (Array.isArray(parsed) ? parsed : [parsed]).map(changeCall)
    const sent = JSON.stringify(Array.isArray(parsed) ? calls : calls[0])
    const text = await (await fetch(target, { method: 'POST', headers: json, body: sent })).text()
    // Integers beyond a float's range stay as they are where nothing is changed.
    if (!reply) return text
    const found = JSON.parse(text) as RpcReply | RpcReply[]
    const replies = (Array.isArray(found) ? found : [found]).map((each) => {
      const call = calls.find(({ id }) => id === each.id)
      return call ? reply(call, each) : each
    })
    return JSON.stringify(Array.isArray(parsed) ? replies : replies[0])
  }
  const served = await serve((request, response) => {
    bodyOf(request)
      .then(answer)
      .then((text) => response.writeHead(200, json).end(text))
      .catch(() => response.destroy())
  })
  return {
    ...served,
    replace: (next: NodeChanges = {}) => {
      changes = next
    },
  }
}

/** Before a service with paths. */
export async function apiProxy(target: string) {
  let change: ApiChange | undefined
  let replaced = 0
  const served = await serve((request, response) => {
    const forward = async () => {
      const body = await bodyOf(request)
      const key = request.headers['x-api-key']
      const answered = await fetch(`${target}${request.url}`, {
        method: request.method!,
        headers: { ...json, ...(key !== undefined && { 'x-api-key': String(key) }) },
        ...(body.length > 0 && { body: new Uint8Array(body) }),
      })
      const text = await answered.text()
      const changed = change?.(request.url!, JSON.parse(text))
      if (changed) replaced += 1
      response.writeHead(changed?.status ?? answered.status, json)
      response.end(changed ? JSON.stringify(changed.body) : text)
    }
    forward().catch(() => response.destroy())
  })
  return {
    ...served,
    /** Answers that were replaced since the last call of `replace`. */
    replaced: () => replaced,
    replace: (next?: ApiChange) => {
      change = next
      replaced = 0
    },
  }
}
