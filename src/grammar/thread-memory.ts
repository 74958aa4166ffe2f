import { dollarSymbol } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { frameOf } from './frames.ts'
import { type Effect, isMutating, type Place } from './intent-frame.ts'
import type { Ask, Understanding } from './understanding.ts'

/** What a thread remembers between two messages. */
export type ThreadState = {
  last?: { intent: string; slots: Slots; effect: Effect; atMs: number }
  pending?: Ask & { atMs: number }
  /** The last quote that the user asked for, which "do it" executes. */
  quote?: { slots: Slots; atMs: number }
  focus?: { asset: string; market: Place; atMs: number }
  recommendations?: { items: readonly { id: string }[]; atMs: number }
  /** The task that a message of the thread has started last. */
  started?: { taskId: string; atMs: number }
}

export const pendingMs = 10 * 60_000
export const contextMs = 30 * 60_000
export const isFresh = (entry: { atMs: number } | undefined, nowMs: number, maxMs: number): boolean =>
  entry !== undefined && nowMs >= entry.atMs && nowMs - entry.atMs <= maxMs

/** Returns the task that was started last, unless something was recommended with it or after it. */
export function lastStarted({ started, recommendations }: ThreadState, nowMs: number): string | undefined {
  if (!started || !isFresh(started, nowMs, contextMs)) return undefined
  return (recommendations?.atMs ?? 0) < started.atMs ? started.taskId : undefined
}

/** Returns what the thread remembers after a message. Only what the user said is remembered. */
export function remember(state: ThreadState, understanding: Understanding, nowMs: number): ThreadState {
  const next: ThreadState = { ...state }
  delete next.pending
  if (understanding.ask) next.pending = { ...understanding.ask, atMs: nowMs }
  const last = understanding.intents.at(-1)
  const frame = last && frameOf(last.name)
  if (!last || !frame) return next
  const isTalk = last.effect === 'none' && last.route === undefined
  if (!isTalk) next.last = { intent: last.name, slots: last.slots, effect: last.effect, atMs: nowMs }
  if (frame.executedBy) next.quote = { slots: last.slots, atMs: nowMs }
  else if (isMutating(last)) delete next.quote
  const { asset = last.slots.asset_out, asset_in, token } = last.slots
  const [first, ...others] = (last.slots.assets ?? '').split(',')
  const focus =
    asset !== undefined && asset !== dollarSymbol
      ? asset
      : (asset_in ?? token ?? (others.length === 0 ? first : undefined))
  if (focus !== undefined && focus !== '')
    next.focus = { asset: focus, market: frame.place ?? 'token', atMs: nowMs }
  return next
}
