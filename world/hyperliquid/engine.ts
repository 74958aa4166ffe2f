import { principalOf } from './agents.ts'
import { apply, type Command } from './apply.ts'
import { RequestError } from './errors.ts'
import type { Answer } from './exchange.ts'
import { openJournal, writeLine } from './journal.ts'
import type { Venue, VenueEvent } from './venue.ts'

export type Engine = {
  venue: Venue
  nowMs: () => number
  /** Applies the command at once. Its effects may be published from `afterPersist` on. */
  submit: (command: Command) => Answer | undefined
  /** Runs when everything submitted so far is in the log. */
  afterPersist: (callback: () => void) => void
  advance: (ms: number) => void
  onEvents: (eventListener: (events: readonly VenueEvent[]) => void) => void
  /** Called within `submit`, with the accounts that the command may have changed. */
  onChange: (listener: (users: Iterable<string>) => void) => void
  close: () => void
}

/** Frequent, because the cost of a save depends on the changes since the last one. */
const snapshotEvery = { bytes: 1_000_000, commands: 2_000, ms: 300_000 }

/** Accounts that changed, and those whose action changed nothing else, such as a changed leverage. */
const changedUsers = ({ state, events }: Venue, command: Command): Set<string> => {
  const users = new Set<string>()
  if (command.kind === 'act') {
    const actor = principalOf(state, command.signer)
    if (actor) users.add(actor.address)
  }
  if ('user' in command) users.add(command.user)
  for (const event of events) if ('user' in event) users.add(event.user)
  return users
}

/**
 * `broken` ends the process: state after a partly applied command must not be served, and the log restores the last
 * complete state.
 */
export const openEngine = (
  dataDir: string,
  seed: number,
  onFatal: (error: unknown) => never,
  clockMs: () => number = Date.now,
): Engine => {
  const { journal, venue, fresh } = openJournal(dataDir, seed, clockMs())
  // An offset that a test added to the clock stays over a restart.
  let offsetMs = Math.max(0, venue.state.nowMs - clockMs())
  const nowMs = () => clockMs() + offsetMs

  let lines: string[] = []
  let waiting: (() => void)[] = []
  let events: VenueEvent[] = []
  let eventListener: (events: readonly VenueEvent[]) => void = () => {}
  let changeListener: ((users: Iterable<string>) => void) | undefined
  let scheduled = false
  let savedMs = Date.now()

  const snapshotIfDue = (): void => {
    const { bytes, commands } = journal.size()
    const due = bytes > snapshotEvery.bytes || commands > snapshotEvery.commands
    if (!due && (commands === 0 || Date.now() - savedMs < snapshotEvery.ms)) return
    journal.snapshot(venue)
    savedMs = Date.now()
  }

  /** One write for all commands of this turn of the event loop, then the replies, then the streams. */
  const flush = (): void => {
    scheduled = false
    if (lines.length > 0) journal.append(lines.join(''))
    lines = []
    const callbacks = waiting
    const flushed = events
    waiting = []
    events = []
    for (const callback of callbacks) callback()
    if (flushed.length > 0) eventListener(flushed)
    snapshotIfDue()
  }

  const schedule = (): void => {
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }

  const submit = (command: Command): Answer | undefined => {
    const atMs = Math.max(nowMs(), venue.state.nowMs)
    try {
      return apply(venue, command, atMs)
    } catch (error) {
      if (error instanceof RequestError) throw error
      return onFatal(error)
    } finally {
      lines.push(writeLine(command, atMs))
      for (const event of venue.events) events.push(event)
      changeListener?.(changedUsers(venue, command))
      schedule()
    }
  }

  if (fresh) submit({ kind: 'tick' })

  return {
    venue,
    nowMs,
    submit,
    afterPersist: (callback) => {
      if (!scheduled) return callback()
      waiting.push(callback)
    },
    advance: (ms) => {
      offsetMs += ms
      submit({ kind: 'tick' })
    },
    onEvents: (next) => {
      eventListener = next
    },
    onChange: (listener) => {
      changeListener = listener
    },
    close: () => {
      flush()
      journal.snapshot(venue)
      journal.close()
    },
  }
}
