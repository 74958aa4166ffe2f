import type { Notifier } from '#durable/events/notifier.ts'
import { createLatch } from '#kernel/async/latch.ts'
import { repeatWhileNeeded } from '#kernel/async/repeat-while-needed.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import { type ChatEvent, isLast } from './events.ts'
import * as store from './store.ts'

/**
 * This module tracks the turns that this instance runs and the streams that it serves. A stream reads turns of this
 * instance from memory, and those of others from the database, after a notification or a poll.
 */

export type StopCause = 'cancelled' | 'suspended' | 'client_gone'
type LocalTurn = {
  events: ChatEvent[]
  stop: (cause: StopCause) => void
  heldUntil: Date
  isUnattended: boolean
}
type Listener = { seq: () => number; wake: () => void }

type Deps = {
  db: Queryable
  notifier: Pick<Notifier, 'on' | 'notify'>
  /** Notifications about a turn reach the instances that listen to this topic. */
  topicOf: (chatId: string, userId: string) => string
  clock: Clock
  log: Log
  graceMs?: number
}

const pageMax = 200
const pollMs = 500
/** How long a turn continues without a listener, so that a client can reconnect. */
const graceMsDefault = 10_000
/** How many grace periods a turn gets after a takeover: clients retry ever less often while no instance answers. */
const gracesOfTakeover = 6
const graceRemembered = 1_000

type NewTurn = { chatId: string; userId: string; isUnattended: boolean }
export type LocalRun = { stored(events: readonly ChatEvent[]): void } & Disposable
export type ChatListeners = {
  /** Registers a turn that runs here; `stop` is called when it has to end. An unattended one needs no listener. */
  run(turn: NewTurn, events: ChatEvent[], stop: LocalTurn['stop']): LocalRun
  /** Yields the events after `seq` as they are stored, up to the last event or the end of the turn. */
  follow(turn: { chatId: string; userId: string }, seq: number, signal: AbortSignal): AsyncIterable<ChatEvent>
}

export function createListeners(deps: Deps): ChatListeners {
  const { db, notifier, topicOf, graceMs = graceMsDefault } = deps
  const state: State = { deps, turns: new Map(), listeners: new Map(), left: new Map(), notedMs: 0 }
  // One poll serves all turns and streams of this instance.
  const watch = repeatWhileNeeded(() => poll(state), {
    everyMs: pollMs,
    onError: (error) => deps.log.debug({ error }, 'turns not polled; the next poll finds the change'),
  })

  return {
    run({ chatId, userId, isUnattended }, events, stop) {
      // If there are more events than `meta`, an earlier run has begun to answer.
      const graces = events.length > 1 ? gracesOfTakeover : 1
      const turn = { events, stop, heldUntil: later(deps.clock.now(), graces * graceMs), isUnattended }
      state.turns.set(chatId, turn)
      const watched = watch()
      return {
        stored(added) {
          events.push(...added)
          wake(state, chatId)
          notifier.notify([topicOf(chatId, userId)])
        },
        [Symbol.dispose]() {
          // This instance may have claimed the turn again by now. Then the entry belongs to the new run, and stays.
          if (state.turns.get(chatId) === turn) state.turns.delete(chatId)
          watched[Symbol.dispose]()
          wake(state, chatId)
        },
      }
    },

    async *follow({ chatId, userId }, from, signal) {
      let seq = from
      let mustRead = true
      using latch = createLatch(signal)
      const notify = () => {
        mustRead = true
        latch.set()
      }
      using _listening = listen(state, chatId, { seq: () => seq, wake: notify })
      using _hint = notifier.on(topicOf(chatId, userId), notify)
      using _watched = watch()
      while (!signal.aborted) {
        latch.reset()
        const local = state.turns.get(chatId)
        const asked: boolean = mustRead
        mustRead = false
        const page: ChatEvent[] = local
          ? local.events.slice(seq, seq + pageMax)
          : asked
            ? await store.eventsAfter(db, chatId, seq, pageMax)
            : []
        for (const event of page) {
          seq = event.seq
          yield event
          if (isLast(event.event)) return
        }
        mustRead ||= page.length > 0
        if (page.length > 0) continue
        if (asked && !local && (await hasEnded(db, chatId, seq))) return
        await latch.wait()
      }
    },
  }
}

type State = {
  deps: Deps
  turns: Map<string, LocalTurn>
  listeners: Map<string, Set<Listener>>
  /** When the last listener left each turn that runs on this instance, by the id of the turn. */
  left: Map<string, Date>
  notedMs: number
}

function wake({ listeners }: State, chatId: string): void {
  for (const listener of listeners.get(chatId) ?? []) listener.wake()
}

function listen(state: State, chatId: string, listener: Listener): Disposable {
  const { listeners, left, deps } = state
  const known = listeners.get(chatId) ?? new Set()
  listeners.set(chatId, known.add(listener))
  return {
    [Symbol.dispose]() {
      known.delete(listener)
      if (known.size > 0) return
      listeners.delete(chatId)
      left.set(chatId, deps.clock.now())
      for (const [oldest] of left) {
        if (left.size <= graceRemembered) break
        left.delete(oldest)
      }
    },
  }
}

async function hasEnded(db: Queryable, chatId: string, seq: number): Promise<boolean> {
  const [progress] = await store.progressOf(db, [chatId])
  return progress === undefined || (progress.is_ended && progress.newest <= seq)
}

async function poll(state: State): Promise<void> {
  const { turns, listeners } = state
  const { db, clock, graceMs = graceMsDefault } = state.deps
  if (turns.size > 0) await stopTurns(state)
  const elsewhere = [...listeners.keys()].filter((chatId) => !turns.has(chatId))
  if (elsewhere.length === 0) return
  // Another instance runs these turns, and stops a turn that has no stored listener for the grace period.
  if (performance.now() - state.notedMs > graceMs / 3) {
    state.notedMs = performance.now()
    await store.noteListeners(db, elsewhere, clock.now())
  }
  for (const { chat_id, newest, is_ended } of await store.progressOf(db, elsewhere))
    for (const listener of listeners.get(chat_id) ?? [])
      if (is_ended || newest > listener.seq()) listener.wake()
}

async function stopTurns({ deps, turns, listeners, left }: State): Promise<void> {
  const { db, clock, graceMs = graceMsDefault } = deps
  const silentSince = later(clock.now(), -graceMs)
  for (const known of await store.runningStates(db, [...turns.keys()])) {
    const turn = turns.get(known.chat_id)
    if (!turn) continue
    if (known.cancel_requested) turn.stop('cancelled')
    else if (known.is_suspended) turn.stop('suspended')
    else if (turn.isUnattended || listeners.has(known.chat_id) || clock.now() < turn.heldUntil) continue
    else if (known.listened_at < silentSince && (left.get(known.chat_id) ?? known.listened_at) < silentSince)
      turn.stop('client_gone')
  }
}
