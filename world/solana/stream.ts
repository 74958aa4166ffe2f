import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { isForeignOrigin } from '#world/origin-check.ts'
import type { Chain } from './chain.ts'
import { readJson, writeJson } from './json.ts'
import { RpcError } from './rpc-error.ts'
import { subscriptions } from './subscriptions.ts'

const messageBytesMax = 100_000
const connectionsMax = 200
const tickMs = 100
/** A client that does not read is cut off before it fills the memory. */
const unreadBytesMax = 10_000_000

const toRpcError = (error: unknown) =>
  error instanceof RpcError
    ? { code: error.code, message: error.message }
    : { code: -32603, message: 'Internal error' }

/** The subscriptions of a Solana node, on this port; clients expect them one port above the JSON-RPC. */
export const openStream = (server: Server, chain: Chain): { close: () => void } => {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax })
  server.on('upgrade', (request, socket: Socket, head) => {
    if (isForeignOrigin(request) || sockets.clients.size >= connectionsMax)
      return void socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n')
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, request))
  })
  sockets.on('connection', (client) => {
    const send = (message: unknown) => {
      if (client.bufferedAmount > unreadBytesMax) client.terminate()
      else client.send(writeJson(message))
    }
    const own = subscriptions(chain, (method, subscription, result) =>
      send({ jsonrpc: '2.0', method, params: { result, subscription } }),
    )
    const timer = setInterval(own.tick, tickMs)
    client.on('error', () => {})
    client.on('close', () => {
      clearInterval(timer)
      own.close()
    })
    client.on('message', (data) => {
      let call: { id?: unknown; method?: unknown; params?: unknown }
      try {
        call = readJson(String(data)) as typeof call
      } catch {
        return send({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } })
      }
      const id = call?.id ?? null
      const method = typeof call?.method === 'string' ? own.methods[call.method] : undefined
      if (!method) return send({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })
      try {
        const result = method(Array.isArray(call.params) ? call.params : [])
        send({ jsonrpc: '2.0', id, result })
        // Events that have happened already are sent at once, after the number of the subscription.
        own.tick()
      } catch (error) {
        send({ jsonrpc: '2.0', id, error: toRpcError(error) })
      }
    })
  })
  return {
    close: () => {
      for (const client of sockets.clients) client.terminate()
    },
  }
}
