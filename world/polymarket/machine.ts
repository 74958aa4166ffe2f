import type { Book } from '#world/venue-core/book.ts'
import { openVenueEngine, type Engine as VenueEngine } from '#world/venue-core/engine.ts'
import type { Machine } from '#world/venue-core/journal.ts'
import { type Answer, apply, type Command } from './apply.ts'
import type { State } from './state.ts'
import { createVenue, newState, type Venue, type VenueEvent } from './venue.ts'

type Books = [conditionId: string, orders: ReturnType<Book['orders']>][]
type StoredSnapshot = { version: 1; state: State; books: Books }

/** The venue as the journal stores and replays it. */
export const venueMachine = (seed: number): Machine<Venue, Command> => ({
  create: (nowMs) => createVenue(newState(seed, nowMs)),
  apply,
  sequenceOf: ({ state }) => state.sequence,
  store: (venue): StoredSnapshot => ({
    version: 1,
    state: venue.state,
    books: [...venue.books].map(([conditionId, book]) => [conditionId, book.orders()]),
  }),
  restore: (stored) => {
    const { state, books } = stored as StoredSnapshot
    // Markets that a newer catalog lists, and fields that an older version lacks.
    const fresh = newState(state.seed, state.nowMs)
    const known = { ...fresh, ...state, markets: new Map([...fresh.markets, ...state.markets]) }
    const venue = createVenue(known)
    for (const [conditionId, orders] of books) venue.books.get(conditionId)?.restore(orders)
    return venue
  },
  revive: (command) => command as unknown as Command,
})

export type Engine = VenueEngine<Venue, Command, VenueEvent, Answer>

export const openEngine = (dataDir: string, seed: number, onFatal: (error: unknown) => never): Engine =>
  openVenueEngine({ dataDir, machine: venueMachine(seed), tick: { kind: 'tick' }, onFatal })
