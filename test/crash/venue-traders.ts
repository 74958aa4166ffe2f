/** Traders that place each of their orders once, through gateways that die and a venue that loses replies. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { bearer, type Gateway, http } from '../harness/gateway.ts'
import type { Customer } from './crash-app.ts'

export type OrderRequest = { path: string; body: Record<string, unknown> }
export type TaskReply = {
  task_id: string
  status: string
  outcome: string | null
  result: { order_id: string | null; order_status: string; filled_size: string } | null
}
export type Trader = Customer & { resting: string[] }

/** A small generator: the same seed gives the same orders on every machine. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const markets = { BTC: 100_000, ETH: 4_000, SOL: 200, HYPE: 40 } as const
type Coin = keyof typeof markets
const coins = Object.keys(markets) as Coin[]

export function randomOrderRequest(random: () => number, trader: Trader): OrderRequest {
  const draw = random()
  const asset = coins[Math.floor(random() * coins.length)]!
  const side = random() < 0.5 ? 'long' : 'short'
  const notional_usd = String(12 + Math.floor(random() * 40))
  const open = { asset, side, notional_usd, leverage: 5 }
  const oid = trader.resting[Math.floor(random() * trader.resting.length)]
  if (draw < 0.08 && oid !== undefined) return { path: '/v1/perp/orders/cancel', body: { order_id: oid } }
  if (draw < 0.2) return { path: '/v1/perp/close', body: { asset } }
  if (draw > 0.8) {
    // Far from the market it rests, beyond it it trades at once.
    const rests = random() < 0.7
    const away = (side === 'long') === rests ? 0.95 : 1.05
    const limit_price = String(markets[asset] * (rests ? away : side === 'long' ? 1.02 : 0.98))
    return { path: '/v1/perp/open', body: { ...open, order_type: 'limit', limit_price } }
  }
  return { path: '/v1/perp/open', body: open }
}

/** Expected rejections of a request; there is no task then. */
const refusals = ['no_position', 'not_found', 'order_not_cancellable', 'insufficient_balance', 'conflict']

/** Repeats the same key until it gets an outcome; undefined where the request was rejected. */
export async function submitUntilAnswered(
  gateways: () => Gateway[],
  trader: Trader,
  { key, request, pick }: { key: string; request: OrderRequest; pick: () => number },
): Promise<TaskReply | undefined> {
  const untilMs = performance.now() + 120_000
  let last: unknown
  for (let waitMs = 20; performance.now() < untilMs; waitMs = Math.min(waitMs * 2, 1_000)) {
    const ready = gateways()
    const gateway = ready[Math.floor(pick() * ready.length)]
    const answer =
      gateway &&
      (await http<TaskReply & { code?: string }>(`${gateway.url}${request.path}?wait=true&timeout=15`, {
        method: 'POST',
        headers: { ...bearer(trader), 'idempotency-key': key },
        body: request.body,
        timeoutMs: 25_000,
      }).catch(() => undefined))
    if (answer?.status === 200) return answer.body
    if (answer && answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
      assert.ok(refusals.includes(answer.body.code ?? ''), `${key}: ${JSON.stringify(answer.body)}`)
      return undefined
    }
    if (answer) last = answer.body
    await delay(waitMs)
  }
  throw new Error(`${key} was never answered: ${JSON.stringify(last)}`)
}
