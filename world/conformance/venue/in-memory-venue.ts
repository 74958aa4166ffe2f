import assert from 'node:assert/strict'
import { apply, type Command } from '#world/hyperliquid/apply.ts'
import type { Answer } from '#world/hyperliquid/exchange.ts'
import { type Perp, perps } from '#world/hyperliquid/markets.ts'
import { conservation, matchRules } from '#world/hyperliquid/settlement.ts'
import type { Account, Order } from '#world/hyperliquid/state.ts'
import { accountOf, createVenue, newState, type Venue } from '#world/hyperliquid/venue.ts'

/**
 * The venue in memory, without its server: for rules that need a thousand venues, or a state that no client can create.
 */
export type InMemoryVenue = {
  venue: Venue
  run: (command: Command, afterMs?: number) => Answer | undefined
  act: (user: string, action: { type: string } & Record<string, unknown>) => unknown
  account: (user: string) => Account
  orders: (user: string) => Order[]
  /** Conservation: the totals are unchanged. */
  assertBalanced: () => void
}

export const startMs = Date.UTC(2026, 0, 1, 0, 0, 5)
export const traded: readonly Perp[] = perps.filter(({ delisted }) => !delisted)
export const dollars = (usd: number): bigint => BigInt(Math.round(usd * 1e6)) * 100n
export const userAt = (number: number): string => `0x${number.toString(16).padStart(40, '0')}`

export const createInMemoryVenue = (seed: number): InMemoryVenue => {
  const venue = createVenue(newState(seed, startMs), matchRules)
  let nonce = startMs
  const run: InMemoryVenue['run'] = (command, afterMs = 0) =>
    apply(venue, command, venue.state.nowMs + afterMs)
  run({ kind: 'settings', settings: { walking: false } })
  for (const { coin, startUsd } of traded) run({ kind: 'price', coin, usd: startUsd, pin: true })
  return {
    venue,
    run,
    act: (user, action) => {
      nonce += 1
      const reply = run({ kind: 'act', signer: user, userSigned: false, action, nonce })
      if (reply?.status !== 'ok') return reply?.response
      const data = reply.response.data as { statuses?: unknown[] } | undefined
      return data?.statuses ?? 'ok'
    },
    account: (user) => accountOf(venue, user),
    orders: (user) => accountOf(venue, user).orders.map((oid) => venue.state.orders.get(oid) as Order),
    assertBalanced: () => {
      const { perp, spot, open } = conservation(venue)
      assert.equal(perp, 0n)
      assert.deepEqual([...new Set(Object.values(spot))], [0n])
      assert.ok(Object.values(open).every((lots) => lots === 0))
    },
  }
}

export const digits = (value: number, places: number): string => String(Number(value.toFixed(places)))

export const limit = (a: number, b: boolean, p: string, s: string, tif = 'Gtc', r = false) => ({
  a,
  b,
  p,
  s,
  r,
  t: { limit: { tif } },
})

export const trigger = (
  a: number,
  b: boolean,
  p: string,
  s: string,
  triggerPx: string,
  tpsl: 'tp' | 'sl',
) => ({
  a,
  b,
  p,
  s,
  r: true,
  t: { trigger: { isMarket: true, triggerPx, tpsl } },
})

export const place = (harness: InMemoryVenue, user: string, ...orders: unknown[]) =>
  harness.act(user, { type: 'order', orders, grouping: 'na' })

/** Opens by immediate orders; the market maker quotes again after each, so that big positions fit too. */
export const take = (harness: InMemoryVenue, user: string, market: Perp, buy: boolean, usd: number): void => {
  const { asset, coin, sizeDecimals, startUsd } = market
  const targetLots = Number(digits(usd / startUsd, sizeDecimals))
  const bound = digits(startUsd * (buy ? 1.2 : 0.8), startUsd > 1_000 ? 0 : startUsd > 10 ? 2 : 4)
  for (let i = 0; i < 4; i += 1) {
    const heldLots = Math.abs(harness.account(user).positions.get(asset)?.size ?? 0) / 10 ** sizeDecimals
    if (targetLots - heldLots <= 0) return
    place(harness, user, limit(asset, buy, bound, digits(targetLots - heldLots, sizeDecimals), 'Ioc'))
    harness.run({ kind: 'price', coin, usd: startUsd, pin: true })
  }
}
