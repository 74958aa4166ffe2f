/** A proxy before the venue that counts the documented request weight of all traffic. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, request } from 'undici'

const lightTypes = new Set([
  'l2Book',
  'allMids',
  'clearinghouseState',
  'orderStatus',
  'spotClearinghouseState',
  'exchangeStatus',
])
const perItems = new Set([
  'userFillsByTime',
  'userFunding',
  'userNonFundingLedgerUpdates',
  'userFills',
  'historicalOrders',
])
const minuteMs = 60_000

export type MeterEntry = { atMs: number; type: string; user: string | undefined; weight: number }

const infoWeight = (type: string): number => (lightTypes.has(type) ? 2 : type === 'userRole' ? 60 : 20)
const items = (type: string, text: string): number => {
  if (!perItems.has(type)) return 0
  const answer: unknown = JSON.parse(text)
  return Array.isArray(answer) ? Math.floor(answer.length / 20) : 0
}

export async function createVenueMeter(target: string) {
  const entries: MeterEntry[] = []
  const agent = new Agent({ connections: 64 })
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString('utf8')
    const reply = await request(target + (incoming.url ?? ''), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      dispatcher: agent,
    }).catch(() => undefined)
    const text = (await reply?.body.text()) ?? '[]'
    const asked = JSON.parse(body) as {
      type?: string
      user?: string
      action?: { type: string; orders?: unknown[]; cancels?: unknown[] }
    }
    const { action } = asked
    const type = action?.type ?? asked.type ?? ''
    const batch = (action?.orders ?? action?.cancels ?? []).length
    const isAnswered = reply?.statusCode === 200
    const listed = isAnswered ? items(type, text) : 0
    const weight = action ? 1 + Math.floor(batch / 40) : infoWeight(type) + listed
    entries.push({ atMs: performance.now(), type, user: asked.user?.toLowerCase(), weight })
    // The venue broke the connection, so the client's connection is broken too.
    if (!reply) return void incoming.socket.destroy()
    outgoing.writeHead(reply.statusCode, { 'content-type': 'application/json' }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const entriesSince = (from: number) => entries.slice(from)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    position: () => entries.length,
    weightSince: (from: number) => entriesSince(from).reduce((sum, { weight }) => sum + weight, 0),
    /** The weight by type of request or action. */
    partsSince(from: number): Record<string, number> {
      const parts: Record<string, number> = {}
      for (const { type, weight } of entriesSince(from)) parts[type] = (parts[type] ?? 0) + weight
      return parts
    },
    /** The maximum weight of any one minute. */
    worstMinuteSince(from: number): number {
      const list = entriesSince(from)
      let worst = 0
      let sum = 0
      for (let [first, last] = [0, 0]; last < list.length; last += 1) {
        sum += list[last]!.weight
        while (list[first]!.atMs <= list[last]!.atMs - minuteMs) sum -= list[first++]!.weight
        worst = Math.max(worst, sum)
      }
      return worst
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await agent.destroy()
    },
  }
}
