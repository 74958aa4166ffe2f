import { Fault } from '#kernel/fault.ts'
import type { Net, NetReply } from '#kernel/net.ts'
import { type ExchangeReply, parseExchangeReply } from './exchange-reply.ts'
import {
  actionUrgency,
  actionWeight,
  type Budget,
  infoWeight,
  itemsWeight,
  unlimitedBudget,
} from './rate-budget.ts'
import type { Urgency } from './urgency.ts'
import { type InfoAnswer, type InfoType, type OnSkipped, parseInfo } from './wire.ts'

/** Requests to the venue, with their egress address and rate budget. */

/** `rateLimited` and `notSent`: certainly not executed. `unknown`: it may have executed. */
export type SendResult = ExchangeReply | { type: 'rateLimited' } | { type: 'notSent' } | { type: 'unknown' }

/** A local address of outgoing requests, and its rate budget at the venue. */
export type Egress = { budget: Budget; localAddress?: string }
export type VenueAddress = {
  url: string
  net: Net
  /** A request uses the egress with the least used budget. */
  egress?: readonly Egress[]
  /** An own node, which serves some request types without a limit. */
  nodeUrl?: string | undefined
  timeoutMs?: number
  /** Called for each skipped record of a reply. */
  onSkipped?: OnSkipped
}

const maxBytes = 8 * 1024 * 1024
const json = { 'content-type': 'application/json', accept: 'application/json' }

type Endpoint = 'info' | 'exchange'
type Call = { weight: number; urgency: Urgency; account?: string | undefined }

/** Request types that the info server of an own node serves. */
const nodeTypes: ReadonlySet<InfoType> = new Set<InfoType>([
  'clearinghouseState',
  'spotClearinghouseState',
  'frontendOpenOrders',
  'activeAssetData',
  'extraAgents',
  'userRole',
  'userRateLimit',
])
const noEgress: readonly Egress[] = [{ budget: unlimitedBudget }]

/** Each request takes its weight from the budget before it is sent. */
export function venueRequests({
  url,
  net,
  egress = noEgress,
  nodeUrl,
  timeoutMs = 5_000,
  onSkipped,
}: VenueAddress) {
  const leastUsed = (): Egress =>
    egress.reduce((best, each) => (each.budget.used() < best.budget.used() ? each : best))

  async function post(
    endpoint: Endpoint,
    body: string,
    { weight, urgency, account }: Call,
  ): Promise<NetReply & { budget: Budget }> {
    const { budget, localAddress } = leastUsed()
    await budget.admit(weight, urgency, account)
    const reply = await net.fetch({
      url: `${url}/${endpoint}`,
      method: 'POST',
      headers: json,
      body,
      timeoutMs,
      maxBytes,
      ...(localAddress !== undefined && { localAddress }),
    })
    if (reply.status === 429) budget.refused(reply.retryAfterMs)
    else budget.answered()
    return { ...reply, budget }
  }

  /** Undefined where the node does not serve the type: the caller then requests the venue. */
  async function askNode(type: InfoType, body: string): Promise<string | undefined> {
    if (nodeUrl === undefined || !nodeTypes.has(type)) return undefined
    const request = { url: `${nodeUrl}/info`, method: 'POST', headers: json, body, timeoutMs, maxBytes }
    const reply = await net.fetch(request).catch((fault: unknown) => {
      if (fault instanceof Fault) return undefined
      throw fault
    })
    return reply?.status === 200 ? reply.body : undefined
  }

  return {
    async info<K extends InfoType>(
      type: K,
      fields: Record<string, unknown>,
      requested: Urgency,
      /** Called for each skipped record of this reply. */
      noteSkipped: () => void = () => {},
    ): Promise<InfoAnswer<K>> {
      const skip: OnSkipped = (list, record) => {
        noteSkipped()
        onSkipped?.(list, record)
      }
      // An order status determines the outcome of a sent action, so it is urgent.
      const urgency = type === 'orderStatus' && requested !== 'background' ? 'exit' : requested
      const account = typeof fields.user === 'string' ? fields.user.toLowerCase() : undefined
      const call = { weight: infoWeight(type), urgency, account }
      const payload = JSON.stringify({ type, ...fields })
      const nodeReply = await askNode(type, payload)
      if (nodeReply !== undefined) return parseInfo(type, nodeReply, skip)
      const { status, body, retryAfterMs, budget } = await post('info', payload, call)
      if (status === 422)
        throw new Fault('upstream_changed', `Hyperliquid rejected the ${type} request as malformed`)
      if (status !== 200)
        throw new Fault('unavailable', `Hyperliquid answered with status ${status}`, {
          ...(retryAfterMs !== undefined && { extras: { retry_after: Math.ceil(retryAfterMs / 1_000) } }),
        })
      const answer = parseInfo(type, body, skip)
      budget.add(itemsWeight(type, answer))
      return answer
    },

    /** `account`: whose budget share is used; a signed action does not name it. */
    async send(body: string, account?: string): Promise<SendResult> {
      const { action } = JSON.parse(body) as { action: Record<string, unknown> }
      const call = {
        weight: actionWeight(action),
        urgency: actionUrgency(action),
        account: account?.toLowerCase(),
      }
      try {
        const { status, body: replyBody } = await post('exchange', body, call)
        if (status === 429) return { type: 'rateLimited' }
        if (status === 422) return { type: 'rejected', message: replyBody.slice(0, 200) }
        if (status !== 200) return { type: 'unknown' }
        const reply = parseExchangeReply(replyBody)
        return reply.type === 'unreadable' ? { type: 'unknown' } : reply
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        return fault.code === 'unavailable' ? { type: 'notSent' } : { type: 'unknown' }
      }
    },
  }
}
