import { principalOf } from './agents.ts'
import type { Answer } from './exchange.ts'
import { openJournal, writeLine } from './journal.ts'
import { apply, type Command } from './machine.ts'
import { Refused } from './refusals.ts'
import type { Happening, Venue } from './venue.ts'

export type Engine = {
  venue: Venue
  nowMs: () => number
  /** Applies at once. What it did may be told from `told` on. */
  submit: (command: Command) => Answer | undefined
  /** Runs when everything submitted so far is in the log. */
  told: (tell: () => void) => void
  advance: (ms: number) => void
  watch: (watcher: (happenings: readonly Happening[]) => void) => void
  /** Is called within `submit`, with the accounts that the command may have changed. */
  onChange: (listener: (users: Iterable<string>) => void) => void
  close: () => void
}

/** Often, as a save costs what happened since the last one. */
const snapshotEvery = { bytes: 1_000_000, commands: 2_000, ms: 300_000 }

/** Those that something happened to, and those who acted without that anything happened: a changed leverage, for one. */
const changedUsers = ({ state, happenings }: Venue, command: Command): Set<string> => {
  const users = new Set<string>()
  if (command.kind === 'act') {
    const actor = principalOf(state, command.signer)
    if (actor) users.add(actor.address)
  }
  if ('user' in command) users.add(command.user)
  for (const happening of happenings) if ('user' in happening) users.add(happening.user)
  return users
}

/** `broken` ends the process: a command that was half done must not be served from, and the log knows what was whole. */
export const openEngine = (dataDir: string, seed: number, broken: (error: unknown) => never): Engine => {
  const { journal, venue, fresh } = openJournal(dataDir, seed, Date.now())
  // Time that a test moved ahead stays ahead over a restart.
  let offsetMs = Math.max(0, venue.state.nowMs - Date.now())
  const nowMs = () => Date.now() + offsetMs

  let lines: string[] = []
  let waiting: (() => void)[] = []
  let happenings: Happening[] = []
  let watcher: (happenings: readonly Happening[]) => void = () => {}
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

  /** One write for all that happened in this turn of the event loop, then the replies, then the streams. */
  const flush = (): void => {
    scheduled = false
    if (lines.length > 0) journal.append(lines.join(''))
    lines = []
    const tells = waiting
    const news = happenings
    waiting = []
    happenings = []
    for (const tell of tells) tell()
    if (news.length > 0) watcher(news)
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
      if (error instanceof Refused) throw error
      return broken(error)
    } finally {
      lines.push(writeLine(command, atMs))
      for (const happening of venue.happenings) happenings.push(happening)
      changeListener?.(changedUsers(venue, command))
      schedule()
    }
  }

  if (fresh) submit({ kind: 'tick' })

  return {
    venue,
    nowMs,
    submit,
    told: (tell) => {
      if (!scheduled) return tell()
      waiting.push(tell)
    },
    advance: (ms) => {
      offsetMs += ms
      submit({ kind: 'tick' })
    },
    watch: (next) => {
      watcher = next
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
