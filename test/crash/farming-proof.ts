/** What the record of the venue says of the positions of strategies: their stops, their exits, and what they sold. */
import assert from 'node:assert/strict'
import type pg from 'pg'
import { http } from '../harness/gateway.ts'
import { units } from './venue-record.ts'

/** An advance of the venue's clock: what lies within it took no time. */
export type Jump = { atMs: number; byMs: number }
type WireFill = { cloid?: string; oid: number; tid: number; side: 'A' | 'B'; sz: string; time: number }
type WireOrder = {
  order: { cloid: string | null; origSz: string; timestamp: number }
  status: string
  statusTimestamp: number
}
type OwnOrder = { cloid: string; leg: string }
export type OwnFill = { oid: number; atMs: number; units: bigint }
type Stop = { fromMs: number; toMs: number; units: bigint }
export type Episode = {
  fromMs: number
  toMs: number
  /** The orders that reduced it. */
  exits: ReadonlySet<number>
  /** The longest real time without a stop over all that was held. */
  bareMs: number
}

/** Returns a time of the venue without its advances, in real milliseconds. */
export function realMs(venueMs: number, jumps: readonly Jump[]): number {
  let shift = 0
  for (const { atMs, byMs } of jumps) {
    if (venueMs <= atMs) break
    if (venueMs < atMs + byMs) return atMs - shift
    shift += byMs
  }
  return venueMs - shift
}

const ask = async <A>(venueUrl: string, body: object): Promise<A> =>
  (await http<A>(`${venueUrl}/info`, { method: 'POST', body })).body

/** Reads the orders of a strategy from the gateway's record, and all else from the venue. */
export async function ownRecord(
  admin: pg.Pool,
  venueUrl: string,
  { strategyId, address }: { strategyId: string; address: string },
): Promise<{ fills: OwnFill[]; stops: Stop[] }> {
  const { rows } = await admin.query<OwnOrder>(
    `select o.cloid, o.leg from venue_order o join task t on t.id = o.task_id
       join strategy_execution e on e.id = t.parent_id where e.strategy_id = $1`,
    [strategyId],
  )
  const legs = new Map(rows.map(({ cloid, leg }) => [cloid, leg]))
  const [all, orders] = await Promise.all([
    ask<WireFill[]>(venueUrl, { type: 'userFills', user: address }),
    ask<WireOrder[]>(venueUrl, { type: 'historicalOrders', user: address }),
  ])
  const fills = all
    .filter(({ cloid }) => cloid !== undefined && legs.has(cloid))
    .sort((one, other) => one.time - other.time || one.tid - other.tid)
    .map(({ oid, side, sz, time }) => ({ oid, atMs: time, units: side === 'B' ? units(sz) : -units(sz) }))
  const stops = orders
    .filter(({ order: { cloid } }) => cloid !== null && legs.get(cloid)?.startsWith('sl'))
    .map(({ order, status, statusTimestamp }) => ({
      fromMs: order.timestamp,
      toMs: status === 'open' ? Number.POSITIVE_INFINITY : statusTimestamp,
      units: units(order.origSz),
    }))
  return { fills, stops }
}

const size = (units: bigint): bigint => (units < 0n ? -units : units)

/** The positions one after another; each ends flat, and nothing is sold beyond what was bought. */
export function episodesOf(
  { fills, stops }: { fills: readonly OwnFill[]; stops: readonly Stop[] },
  jumps: readonly Jump[],
  name: string,
): Episode[] {
  const episodes: Episode[] = []
  let [held, fromMs] = [0n, 0]
  let exits = new Set<number>()
  let steps: { atMs: number; held: bigint }[] = []
  for (const { oid, atMs, units: change } of fills) {
    if (held === 0n) [fromMs, exits, steps] = [atMs, new Set(), []]
    else if (change > 0n !== held > 0n) {
      exits.add(oid)
      assert.ok(size(change) <= size(held), `${name}: sold more than its own at ${atMs}`)
    }
    held += change
    steps.push({ atMs, held })
    if (held === 0n) episodes.push({ fromMs, toMs: atMs, exits, bareMs: longestBare(steps, stops, jumps) })
  }
  assert.equal(held, 0n, `${name}: something is still open`)
  return episodes
}

/** The longest real time in which the open stops covered less than what was held. */
function longestBare(
  steps: readonly { atMs: number; held: bigint }[],
  stops: readonly Stop[],
  jumps: readonly Jump[],
): number {
  const endMs = steps.at(-1)!.atMs
  const times = [...steps.map(({ atMs }) => atMs), ...stops.flatMap(({ fromMs, toMs }) => [fromMs, toMs])]
    .filter((atMs) => atMs >= steps[0]!.atMs && atMs <= endMs)
    .sort((a, b) => a - b)
  let [longest, bareFrom]: [number, number | undefined] = [0, undefined]
  for (const atMs of [...new Set(times), endMs]) {
    const held = size(steps.findLast((step) => step.atMs <= atMs)?.held ?? 0n)
    const covered = stops
      .filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)
      .reduce((sum, { units: each }) => sum + each, 0n)
    const isBare = held > covered && atMs < endMs
    if (isBare) bareFrom ??= atMs
    else if (bareFrom !== undefined) {
      longest = Math.max(longest, realMs(atMs, jumps) - realMs(bareFrom, jumps))
      bareFrom = undefined
    }
  }
  return longest
}

/** What a strategy held at a time of the venue. */
export const heldAt = (fills: readonly OwnFill[], atMs: number): bigint =>
  fills.filter((fill) => fill.atMs <= atMs).reduce((sum, { units: each }) => sum + each, 0n)
