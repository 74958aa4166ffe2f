import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import type { Net, NetReply } from '#kernel/wire/upstream-http.ts'
import { type ExchangeReply, parseExchangeReply } from './exchange-reply.ts'
import { createOwnNode } from './own-node.ts'
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

/** Sends requests to the venue, with their egress address and rate budget. */

/** With the result `rateLimited` or `notSent`, an action certainly did not execute; with `unknown`, it may have. */
export type SendResult = ExchangeReply | { type: 'rateLimited' } | { type: 'notSent' } | { type: 'unknown' }

/** A local address of outgoing requests, and its rate budget at the venue. */
export type Egress = { budget: Budget; localAddress?: string }
export type VenueAddress = {
  url: string
  net: Net
  /** A request uses the egress with the least used budget. */
  egress?: readonly Egress[]
  /** An operator's own node, which serves some request types without a limit. */
  nodeUrl?: string | undefined
  nowMs: () => number
  onSkipped?: OnSkipped
}

const timeoutMs = 5_000
const maxBytes = 8 * 1024 * 1024
const json = { 'content-type': 'application/json', accept: 'application/json' }

type Endpoint = 'info' | 'exchange'
type Call = { weight: number; urgency: Urgency; account?: string | undefined }

/** The waits before each repetition of a read whose reply could not be used, by the urgency of the caller. */
const rereadWaitsMs: Readonly<Record<Urgency, readonly number[]>> = {
  exit: [100, 300, 900],
  work: [100, 300],
  admission: [100, 300],
  view: [],
  background: [],
}
const statusFault = (status: number, retryAfterMs: number | undefined) =>
  new Fault('unavailable', `Hyperliquid answered with status ${status}`, {
    ...(retryAfterMs !== undefined && { extras: { retry_after: Math.ceil(retryAfterMs / 1_000) } }),
  })
const noEgress: readonly Egress[] = [{ budget: unlimitedBudget }]

/**
 * Turns one error for several orders into a rejection of the whole action, because the venue answers an invalid payload
 * with a single error.
 */
function ofWholeAction<Reply extends ExchangeReply>(reply: Reply, { orders }: Record<string, unknown>) {
  if (reply.type !== 'ok' || !Array.isArray(orders) || orders.length < 2 || reply.legs.length > 1)
    return reply
  const [only] = reply.legs
  return only?.type === 'error' ? { type: 'rejected' as const, message: only.message } : reply
}

type InfoOptions = {
  noteSkipped?: () => void
  /** The user whose share of the budget pays for a read that names no account. */
  owner?: string | undefined
  /** The most items that the answer can have, whose weight is taken before the request is sent. */
  itemsMax?: number | undefined
}

/** Each request takes its weight from the budget before it is sent. */
export function createVenueRequests({
  url,
  net,
  egress = noEgress,
  nodeUrl,
  nowMs,
  onSkipped,
}: VenueAddress) {
  const ownNode = createOwnNode({ url: nodeUrl, net, nowMs })
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

  /** Repeats a request within the budget if the reply is no answer, such as the page of a proxy. */
  async function readVenue<K extends InfoType>(
    type: K,
    payload: string,
    call: Call,
    skip: OnSkipped,
  ): Promise<InfoAnswer<K>> {
    for (let attempt = 0; ; attempt += 1) {
      const { status, body, retryAfterMs, budget } = await post('info', payload, call)
      if (status === 422)
        throw new Fault('upstream_changed', `Hyperliquid rejected the ${type} request as malformed`)
      const waitMs = rereadWaitsMs[call.urgency][attempt]
      try {
        if (status !== 200) throw statusFault(status, retryAfterMs)
        const answer = parseInfo(type, body, skip)
        const items = Array.isArray(answer) ? answer.length : 0
        const unexpected = infoWeight(type) + itemsWeight(type, items) - call.weight
        if (unexpected > 0) budget.add(unexpected, call.urgency, call.account)
        return answer
      } catch (fault) {
        const isRepeatable = fault instanceof Fault && fault.code === 'unavailable' && status !== 429
        if (!isRepeatable || retryAfterMs !== undefined || waitMs === undefined) throw fault
      }
      await pause(waitMs)
    }
  }

  return {
    async info<K extends InfoType>(
      type: K,
      fields: Record<string, unknown>,
      requested: Urgency,
      { noteSkipped = () => {}, owner, itemsMax = 0 }: InfoOptions = {},
    ): Promise<InfoAnswer<K>> {
      const skip: OnSkipped = (list, record) => {
        noteSkipped()
        onSkipped?.(list, record)
      }
      // An order status determines the outcome of an action that an accepted task has sent, so it is urgent.
      const urgency = type === 'orderStatus' && requested === 'work' ? 'exit' : requested
      const account = typeof fields.user === 'string' ? fields.user.toLowerCase() : owner
      const call = { weight: infoWeight(type) + itemsWeight(type, itemsMax), urgency, account }
      const known = await ownNode.ask(type, fields, skip)
      return known ?? readVenue(type, JSON.stringify({ type, ...fields }), call, skip)
    },

    /** Sends a signed action. `account` is the one whose budget share pays, because the action does not name it. */
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
        return reply.type === 'unreadable' ? { type: 'unknown' } : ofWholeAction(reply, action)
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        return fault.code === 'unavailable' ? { type: 'notSent' } : { type: 'unknown' }
      }
    },
  }
}
