/** A proxy in front of the venue that delays or hides records in reads; orders and cancels pass unchanged. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { infoWeight } from '#upstreams/hyperliquid/rate-budget.ts'

type Row = Record<string, unknown>

/** Every field absent: the venue unchanged. */
export type Lag = {
  /** `orderStatus` answers `unknownOid` for so long after the order was sent; `Infinity` for ever. */
  statusMs?: number
  /** Orders are missing among the open ones for so long. */
  ordersMs?: number
  /** Fills are missing for so long after they happened. */
  fillsMs?: number
  /** Changes an answer, by the type of the request. */
  rewrite?: (type: string, answer: unknown) => unknown
  /** The whole body of the reply to a read, instead of the venue's. */
  body?: (type: string) => string | undefined
  /** Runs before an action is passed on; a result is the reply instead of the venue's. */
  intercept?: (action: Row) => Promise<Row | undefined> | Row | undefined
  /** Changes the reply to an action that the venue accepted. */
  rewriteReply?: (action: Row, reply: Row) => unknown
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

export async function laggingVenue(target: string) {
  let lag: Lag = {}
  const sentAt = new Map<string, number>()
  const questions = new Map<string, number>()
  const latest = new Map<string, Row>()
  const weights = new Map<string, number>()
  /** How far the venue's clock is ahead. */
  let aheadMs = 0

  const ageOf = (order: Row): number => {
    const cloid = order.cloid as string | null | undefined
    const sent = cloid ? sentAt.get(cloid) : undefined
    return sent === undefined ? Number.POSITIVE_INFINITY : Date.now() - sent
  }
  const isShown = (order: Row, afterMs: number | undefined) =>
    afterMs === undefined || ageOf(order) >= afterMs

  const applyLag = (type: string, answer: unknown): unknown => {
    if (type === 'clearinghouseState') aheadMs = Number((answer as Row).time) - Date.now()
    if (type === 'orderStatus') {
      const order = ((answer as Row).order as Row | undefined)?.order as Row | undefined
      return order && !isShown(order, lag.statusMs) ? { status: 'unknownOid' } : answer
    }
    if (type === 'frontendOpenOrders')
      return (answer as Row[])
        .filter((order) => isShown(order, lag.ordersMs))
        .map((order) => ({
          ...order,
          children: (order.children as Row[]).filter((child) => isShown(child, lag.ordersMs)),
        }))
    if (type === 'userFillsByTime' || type === 'userFills') {
      const nowMs = Date.now() + aheadMs
      return (answer as Row[]).filter(
        (fill) => lag.fillsMs === undefined || nowMs - Number(fill.time) >= lag.fillsMs,
      )
    }
    return answer
  }

  const recordSent = (action: Row) => {
    for (const order of (action.orders as Row[] | undefined) ?? [])
      if (typeof order.c === 'string') sentAt.set(order.c, sentAt.get(order.c) ?? Date.now())
  }

  const server = createServer((request, response) => {
    const serve = async () => {
      const body = await bodyOf(request)
      const asked = JSON.parse(body) as Row
      const type = String(asked.type ?? '')
      if (request.url === '/exchange') recordSent(asked.action as Row)
      else {
        questions.set(type, (questions.get(type) ?? 0) + 1)
        latest.set(type, asked)
        const user = String(asked.user ?? '').toLowerCase()
        weights.set(user, (weights.get(user) ?? 0) + infoWeight(type))
      }
      const instead = request.url === '/exchange' ? await lag.intercept?.(asked.action as Row) : undefined
      if (instead) {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(instead))
        return
      }
      const page = request.url === '/info' ? lag.body?.(type) : undefined
      if (page !== undefined) {
        response.writeHead(200, { 'content-type': 'text/html' }).end(page)
        return
      }
      const reply = await fetch(`${target}${request.url}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      const text = await reply.text()
      const isRead = request.url === '/info' && reply.status === 200
      const lagged = isRead ? applyLag(type, JSON.parse(text)) : undefined
      const changed = isRead ? JSON.stringify(lag.rewrite?.(type, lagged) ?? lagged) : text
      const isReply = request.url === '/exchange' && reply.status === 200 && lag.rewriteReply !== undefined
      response.writeHead(reply.status, { 'content-type': 'application/json' })
      response.end(
        isReply ? JSON.stringify(lag.rewriteReply?.(asked.action as Row, JSON.parse(text) as Row)) : changed,
      )
    }
    serve().catch(() => request.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    set: (next: Lag) => {
      lag = next
    },
    /** The number of requests of a type. */
    asked: (type: string) => questions.get(type) ?? 0,
    /** The latest request of a type, as it was sent. */
    latest: (type: string) => latest.get(type),
    /** The weight of all requests about an account. */
    weightOf: (address: string) => weights.get(address.toLowerCase()) ?? 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
export type LaggingVenue = Awaited<ReturnType<typeof laggingVenue>>
