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

/** Requests to the venue, by the address they leave from and the budget they are paid from. */

/** `busy` and `unsent`: certainly not done. `doubt`: nobody can say. */
export type SendResult = ExchangeReply | { type: 'busy' } | { type: 'unsent' } | { type: 'doubt' }

/** One address that requests leave from, and what the venue counts for it. */
export type Egress = { budget: Budget; localAddress?: string }
export type VenueAddress = {
  url: string
  net: Net
  /** The request goes out where most of the budget is left. */
  egress?: readonly Egress[]
  /** An own node, which answers some questions and counts nothing. */
  nodeUrl?: string | undefined
  timeoutMs?: number
  /** Hears of each record that is left out of an answer. */
  onSkipped?: OnSkipped
}

const maxBytes = 8 * 1024 * 1024
const json = { 'content-type': 'application/json', accept: 'application/json' }

type Endpoint = 'info' | 'exchange'
type Call = { weight: number; urgency: Urgency; account?: string | undefined }

/** Questions that the info server of an own node answers. */
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

/** The requests themselves: each one pays before it leaves. */
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

  /** Undefined where the node does not answer that: then the venue itself is asked. */
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
    ): Promise<InfoAnswer<K>> {
      // An order status is asked for to learn the outcome of an action that was sent.
      const urgency = type === 'orderStatus' && requested !== 'background' ? 'exit' : requested
      const account = typeof fields.user === 'string' ? fields.user.toLowerCase() : undefined
      const call = { weight: infoWeight(type), urgency, account }
      const payload = JSON.stringify({ type, ...fields })
      const nodeReply = await askNode(type, payload)
      if (nodeReply !== undefined) return parseInfo(type, nodeReply, onSkipped)
      const { status, body, retryAfterMs, budget } = await post('info', payload, call)
      if (status === 422) throw new Fault('upstream_changed', `Hyperliquid knows no ${type} of this form`)
      if (status !== 200)
        throw new Fault('unavailable', `Hyperliquid answered with status ${status}`, {
          ...(retryAfterMs !== undefined && { extras: { retry_after: Math.ceil(retryAfterMs / 1_000) } }),
        })
      const answer = parseInfo(type, body, onSkipped)
      budget.add(itemsWeight(type, answer))
      return answer
    },

    /** `account`: whose share pays; a signed action does not name it. */
    async send(body: string, account?: string): Promise<SendResult> {
      const { action } = JSON.parse(body) as { action: Record<string, unknown> }
      const call = {
        weight: actionWeight(action),
        urgency: actionUrgency(action),
        account: account?.toLowerCase(),
      }
      try {
        const { status, body: replyBody } = await post('exchange', body, call)
        if (status === 429) return { type: 'busy' }
        if (status === 422) return { type: 'refused', message: replyBody.slice(0, 200) }
        if (status !== 200) return { type: 'doubt' }
        const reply = parseExchangeReply(replyBody)
        return reply.type === 'unreadable' ? { type: 'doubt' } : reply
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        return fault.code === 'unavailable' ? { type: 'unsent' } : { type: 'doubt' }
      }
    },
  }
}
