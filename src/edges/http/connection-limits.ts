import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '#kernel/log.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'

export type ConnectionLimits = {
  max: number
  /** The most connections of one address; infinite behind a proxy, whose address all connections have. */
  perAddress: number
  stallMs?: number
}
export const unlimitedConnections: ConnectionLimits = {
  max: Number.POSITIVE_INFINITY,
  perAddress: Number.POSITIVE_INFINITY,
}

const sweepMs = 100
/** The most requests that a client may send on one connection before the first of them is answered. */
const exchangesMax = 64
const warnEveryMs = 10_000
const stallMsDefault = 30_000

type Connection = {
  socket: Socket
  address: string
  /** The answers under way; a client that pipelines has several. */
  responses: ServerResponse[]
  lastUse: number
  hasAnswered: boolean
}

const longerUnused = (a: Connection | undefined, b: Connection): Connection =>
  a === undefined || b.lastUse < a.lastUse ? b : a
const isUnread = ({ socket }: Connection): boolean => socket.writableLength > 0

/**
 * Tracks the open connections by address. Above a limit it closes the longest unused connection of the address with the
 * most connections, so that many connections of one address never block another. It also closes idle connections when
 * the server closes, because Node would wait for them.
 */
export function createSockets({ max, perAddress, stallMs = stallMsDefault }: ConnectionLimits, log: Log) {
  const bySocket = new Map<Socket, Connection>()
  const byAddress = new Map<string, Set<Connection>>()
  let warnedMs = Number.NEGATIVE_INFINITY
  let uses = 0

  const remove = (connection: Connection): void => {
    if (!bySocket.delete(connection.socket)) return
    const siblings = byAddress.get(connection.address)
    siblings?.delete(connection)
    if (siblings?.size === 0) byAddress.delete(connection.address)
  }
  const close = (connection: Connection, sentence: string, facts: object): void => {
    const nowMs = performance.now()
    if (nowMs - warnedMs > warnEveryMs) {
      warnedMs = nowMs
      log.warn({ address: connection.address, ...facts }, sentence)
    }
    remove(connection)
    connection.socket.destroy()
  }
  /**
   * Closes the longest unused connection among those that are idle, else among those that are still uploading, else
   * among those whose answer is not read. If all of an address are in use, its new connection is closed; a new
   * connection of another address closes the longest unused one.
   */
  const closeOneOf = (siblings: ReadonlySet<Connection>, newcomer: Connection, limit: number): void => {
    let idle: Connection | undefined
    let uploading: Connection | undefined
    let unread: Connection | undefined
    let oldest: Connection | undefined
    const sentence = 'too many connections: the longest unused one of this address is closed'
    const facts = { connections: siblings.size, limit }
    for (const each of siblings) {
      if (each === newcomer) continue
      if (each.responses.length === 0) {
        idle = longerUnused(idle, each)
        continue
      }
      oldest = longerUnused(oldest, each)
      if (isUnread(each)) unread = longerUnused(unread, each)
      if (each.responses.some(({ req }) => !req.complete)) uploading = longerUnused(uploading, each)
    }
    const inUse = siblings.has(newcomer) ? newcomer : oldest
    close(idle ?? uploading ?? unread ?? inUse ?? newcomer, sentence, facts)
  }
  const largest = (own: Set<Connection>): Set<Connection> => {
    let found = own
    for (const siblings of byAddress.values()) if (siblings.size > found.size) found = siblings
    return found
  }
  const admit = (socket: Socket): void => {
    const address = addressKey(socket.remoteAddress ?? 'unknown')
    const connection: Connection = { socket, address, responses: [], lastUse: ++uses, hasAnswered: false }
    const siblings = byAddress.get(address) ?? new Set()
    byAddress.set(address, siblings.add(connection))
    bySocket.set(socket, connection)
    socket.once('close', () => remove(connection))
    if (siblings.size > perAddress) closeOneOf(siblings, connection, perAddress)
    if (bySocket.size > max) closeOneOf(largest(siblings), connection, max)
  }

  /** All responses share one listener, because a listener of its own would allocate a function for each request. */
  function end(this: ServerResponse): void {
    const connection = bySocket.get(this.req.socket)
    if (!connection) return
    const at = connection.responses.indexOf(this)
    if (at >= 0) connection.responses.splice(at, 1)
    connection.lastUse = ++uses
    connection.hasAnswered = true
  }
  const begin = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const connection = bySocket.get(socket)
    if (!connection) return
    connection.responses.push(response)
    if (connection.responses.length > exchangesMax)
      close(connection, 'too many requests at once on one connection: it is closed', {
        limit: exchangesMax,
      })
    response.on('close', end)
  }
  /**
   * Handles a silent socket. While a client awaits an answer, its connection stays open: it has nothing to read yet.
   */
  const onSilence = (socket: Socket): void => {
    const connection = bySocket.get(socket)
    if (connection && connection.responses.length > 0) {
      if (isUnread(connection))
        close(connection, 'an answer of which nothing is read: its connection is closed', { stallMs })
      return
    }
    // A connection that is idle after an answer is closed here; before its first request, Node's time limits end it.
    if (!connection || connection.hasAnswered) socket.destroy()
  }

  return {
    watch(server: Server): void {
      server.on('connection', admit)
      server.on('request', begin)
      server.setTimeout(stallMs, onSilence)
      // A request with an `Expect` header other than 100-continue is handled like any request; without this listener
      // Node would answer it with a 417 in Node's own format.
      server.on('checkExpectation', (request, response) => server.emit('request', request, response))
    },
    count: (): number => bySocket.size,
    /** Whether the head of an answer is sent but not yet its end. */
    isAnswering: (socket: Socket): boolean =>
      bySocket.get(socket)?.responses.some(({ headersSent }) => headersSent) ?? false,
    /**
     * Closes idle connections at each interval until the returned function is called. The wait for the first interval
     * leaves time for a request that is arriving.
     */
    closeIdle(): () => void {
      const timer = setInterval(() => {
        for (const [socket, { responses }] of bySocket) if (responses.length === 0) socket.destroy()
      }, sweepMs)
      return () => clearInterval(timer)
    },
  }
}
