import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { Fill, Order, State } from './state.ts'

/**
 * Ended orders and fills never change, so each is written once, into a segment, and snapshots hold the rest. The cost
 * of a save depends on what changed since the last one, not on the whole history.
 */
export type Archive = {
  /** The state without the content of segments, and the ids of the segments it needs. */
  store: (state: State, write: (path: string, content: Buffer) => void) => Stored
  /** Restores the content of segments into a state that was stored without it. */
  restore: (stored: Stored) => State
  /** Called after the snapshot that names the needed segments has been written. */
  removeUnneeded: () => void
}

export type Stored = { state: State; segments: number[]; firstFills: Map<string, number> }

type Content = { orders: Order[]; fills: Fill[] }
type Segment = { name: number; oids: number[]; lastTid: number }

const pathOf = (dataDir: string, segment: number): string => join(dataDir, `history-${segment}`)

const segmentOf = (name: number, { orders, fills }: Content): Segment => ({
  name,
  oids: orders.map(({ oid }) => oid),
  lastTid: fills.reduce((last, { tid }) => Math.max(last, tid), 0),
})

const firstFillsOf = ({ accounts }: State): Map<string, number> => {
  const first = new Map<string, number>()
  for (const { address, fills } of accounts.values()) if (fills[0]) first.set(address, fills[0].tid)
  return first
}

export const createArchive = (dataDir: string): Archive => {
  let segments: Segment[] = []
  const archivedOids = new Set<number>()
  const lastTids = new Map<string, number>()

  const trackSegment = (name: number, content: Content): void => {
    segments.push(segmentOf(name, content))
    for (const { oid } of content.orders) archivedOids.add(oid)
    for (const { user, tid } of content.fills) lastTids.set(user, Math.max(lastTids.get(user) ?? 0, tid))
  }

  const unarchived = (state: State): Content => {
    const orders = [...state.orders.values()].filter(
      ({ oid, phase }) => phase === 'done' && !archivedOids.has(oid),
    )
    const fills: Fill[] = []
    for (const account of state.accounts.values()) {
      const last = lastTids.get(account.address) ?? 0
      const from = account.fills.findLastIndex(({ tid }) => tid <= last) + 1
      for (let at = from; at < account.fills.length; at += 1) fills.push(account.fills[at] as Fill)
    }
    return { orders, fills }
  }

  const dropPruned = (state: State, firstFills: ReadonlyMap<string, number>): void => {
    const oldest = Math.min(Number.MAX_SAFE_INTEGER, ...firstFills.values())
    segments = segments.filter(
      ({ oids, lastTid }) => lastTid >= oldest || oids.some((oid) => state.orders.has(oid)),
    )
    for (const oid of archivedOids) if (!state.orders.has(oid)) archivedOids.delete(oid)
  }

  return {
    store: (state, write) => {
      const content = unarchived(state)
      if (content.orders.length + content.fills.length > 0) {
        write(pathOf(dataDir, state.sequence), serialize(content))
        trackSegment(state.sequence, content)
      }
      const firstFills = firstFillsOf(state)
      dropPruned(state, firstFills)
      const withoutArchived: State = {
        ...state,
        orders: new Map([...state.orders].filter(([oid]) => !archivedOids.has(oid))),
        accounts: new Map([...state.accounts].map(([key, account]) => [key, { ...account, fills: [] }])),
      }
      return { state: withoutArchived, segments: segments.map(({ name }) => name), firstFills }
    },
    restore: ({ state, segments: names, firstFills }) => {
      const known = new Set([...state.accounts.values()].flatMap(({ orders }) => orders))
      const orders = [...state.orders.values()]
      for (const name of names) {
        const content = deserialize(readFileSync(pathOf(dataDir, name))) as Content
        trackSegment(name, content)
        for (const order of content.orders) if (known.has(order.oid)) orders.push(order)
        for (const fill of content.fills) {
          const first = firstFills.get(fill.user)
          if (first !== undefined && fill.tid >= first) state.accounts.get(fill.user)?.fills.push(fill)
        }
      }
      // In the order of their entry, as in a venue that was never restored.
      orders.sort((a, b) => a.oid - b.oid)
      state.orders = new Map(orders.map((order) => [order.oid, order]))
      return state
    },
    removeUnneeded: () => {
      const needed = new Set(segments.map(({ name }) => `history-${name}`))
      for (const name of readdirSync(dataDir))
        if (/^history-[0-9]+$/.test(name) && !needed.has(name)) rmSync(join(dataDir, name), { force: true })
    },
  }
}
