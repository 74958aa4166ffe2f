import { openVenueEngine, type Engine as VenueEngine } from '#world/venue-core/engine.ts'
import { principalOf } from './agents.ts'
import type { Command } from './apply.ts'
import type { Answer } from './exchange.ts'
import { venueMachine } from './journal.ts'
import type { Venue, VenueEvent } from './venue.ts'

export type Engine = VenueEngine<Venue, Command, VenueEvent, Answer | undefined>

/** Accounts that changed, and those whose action changed nothing else, such as a changed leverage. */
export const changedUsers = ({ state, events }: Venue, command: Command): Set<string> => {
  const users = new Set<string>()
  if (command.kind === 'act') {
    const actor = principalOf(state, command.signer)
    if (actor) users.add(actor.address)
  }
  if ('user' in command) users.add(command.user)
  for (const event of events) if ('user' in event) users.add(event.user)
  return users
}

export const openEngine = (
  dataDir: string,
  seed: number,
  onFatal: (error: unknown) => never,
  clockMs?: () => number,
): Engine =>
  openVenueEngine({
    dataDir,
    machine: venueMachine(dataDir, seed),
    tick: { kind: 'tick' },
    onFatal,
    ...(clockMs && { clockMs }),
  })
