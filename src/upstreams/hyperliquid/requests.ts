import { Fault } from '#kernel/fault.ts'
import type { Net, NetReply } from '#kernel/net.ts'
import { type ExchangeReply, exchangeReplyOf } from './exchange-reply.ts'
import {
  actionUrgency,
  actionWeight,
  type Budget,
  infoWeight,
  itemsWeight,
  noBudget,
  type Urgency,
} from './weights.ts'
import { type InfoAnswer, type InfoType, infoOf, type OnSkipped } from './wire.ts'

/** Requests to the venue, by the address they leave from and the budget they are paid from. */

/** `busy` and `unsent`: certainly not done. `doubt`: nobody can say. */
export type Sent = ExchangeReply | { is: 'busy' } | { is: 'unsent' } | { is: 'doubt' }

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

type Door = 'info' | 'exchange'
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
const noEgress: readonly Egress[] = [{ budget: noBudget }]

/** The requests themselves: each one pays before it leaves. */
export function venueRequests({
  url,
  net,
  egress = noEgress,
  nodeUrl,
  timeoutMs = 5_000,
  onSkipped,
}: VenueAddress) {
  const roomiest = (): Egress =>
    egress.reduce((best, each) => (each.budget.used() < best.budget.used() ? each : best))

  async function post(
    door: Door,
    body: string,
    { weight, urgency, account }: Call,
  ): Promise<NetReply & { budget: Budget }> {
    const { budget, localAddress } = roomiest()
    await budget.admit(weight, urgency, account)
    const reply = await net.fetch({
      url: `${url}/${door}`,
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
      asked: Urgency,
    ): Promise<InfoAnswer<K>> {
      // An order status is asked for to learn the outcome of an action that was sent.
      const urgency = type === 'orderStatus' && asked !== 'background' ? 'exit' : asked
      const account = typeof fields.user === 'string' ? fields.user.toLowerCase() : undefined
      const call = { weight: infoWeight(type), urgency, account }
      const question = JSON.stringify({ type, ...fields })
      const told = await askNode(type, question)
      if (told !== undefined) return infoOf(type, told, onSkipped)
      const { status, body, retryAfterMs, budget } = await post('info', question, call)
      if (status === 422) throw new Fault('upstream_changed', `Hyperliquid knows no ${type} of this form`)
      if (status !== 200)
        throw new Fault('unavailable', `Hyperliquid answered with status ${status}`, {
          ...(retryAfterMs !== undefined && { extras: { retry_after: Math.ceil(retryAfterMs / 1_000) } }),
        })
      const answer = infoOf(type, body, onSkipped)
      budget.add(itemsWeight(type, answer))
      return answer
    },

    /** `account`: whose share pays; a signed action does not name it. */
    async send(body: string, account?: string): Promise<Sent> {
      const { action } = JSON.parse(body) as { action: Record<string, unknown> }
      const call = {
        weight: actionWeight(action),
        urgency: actionUrgency(action),
        account: account?.toLowerCase(),
      }
      try {
        const { status, body: said } = await post('exchange', body, call)
        if (status === 429) return { is: 'busy' }
        if (status === 422) return { is: 'refused', message: said.slice(0, 200) }
        if (status !== 200) return { is: 'doubt' }
        const reply = exchangeReplyOf(said)
        return reply.is === 'unreadable' ? { is: 'doubt' } : reply
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        return fault.code === 'unavailable' ? { is: 'unsent' } : { is: 'doubt' }
      }
    },
  }
}
