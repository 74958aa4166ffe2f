import type { Book } from '#world/venue-core/book.ts'
import type { Machine } from '#world/venue-core/journal.ts'
import { apply, type Command } from './apply.ts'
import { createArchive, type Stored } from './archive.ts'
import { matchRules } from './settlement.ts'
import type { State } from './state.ts'
import { createVenue, newState, type Venue } from './venue.ts'

type Books = [asset: number, orders: ReturnType<Book['orders']>][]
/** The first version had every order and fill in the snapshot. */
type StoredSnapshot = { version: 1; state: State; books: Books } | (Stored & { version: 2; books: Books })

/** The venue as the journal stores and replays it. */
export const venueMachine = (dataDir: string, seed: number): Machine<Venue, Command> => {
  const archive = createArchive(dataDir)
  return {
    create: (nowMs) => createVenue(newState(seed, nowMs), matchRules),
    apply,
    sequenceOf: ({ state }) => state.sequence,
    store: (venue, write): StoredSnapshot => ({
      ...archive.store(venue.state, write),
      version: 2,
      books: [...venue.books].map(([asset, book]) => [asset, book.orders()]),
    }),
    restore: (stored) => {
      const saved = stored as StoredSnapshot
      const state = saved.version === 1 ? saved.state : archive.restore(saved)
      const venue = createVenue(state, matchRules)
      for (const [asset, orders] of saved.books) venue.books.get(asset)?.restore(orders)
      return venue
    },
    afterSnapshot: archive.removeUnneeded,
    revive: (command) => {
      if ('units' in command) command.units = BigInt(command.units as string)
      return command as unknown as Command
    },
  }
}
