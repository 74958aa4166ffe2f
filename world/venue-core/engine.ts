import { type Machine, openJournal, writeLine } from './journal.ts'
import { RequestError } from './request-error.ts'

type Timed = { nowMs: number }
/** Events collect in the venue while a command is applied. */
type Base<Event> = { state: Timed; events: readonly Event[] }

export type Engine<Venue, Command, Event, Answer> = {
  venue: Venue
  nowMs: () => number
  /** Applies the command at once. Its effects may be published from `afterPersist` on. */
  submit: (command: Command) => Answer
  /** Runs when everything submitted so far is in the log. */
  afterPersist: (callback: () => void) => void
  advance: (ms: number) => void
  onEvents: (eventListener: (events: readonly Event[]) => void) => void
  /** Called within `submit`, when the command has been applied. */
  onApplied: (listener: (command: Command) => void) => void
  close: () => void
}

/** Rarer the larger the snapshot is: it is written while nothing else runs. */
const snapshotEvery = { bytes: 1_000_000, commands: 2_000, ms: 300_000 }

type Options<Venue, Command> = {
  dataDir: string
  machine: Machine<Venue, Command>
  /** The command that lets time pass. */
  tick: Command
  /**
   * Ends the process: state after a partly applied command must not be served, and the log restores the last complete
   * state.
   */
  onFatal: (error: unknown) => never
  /** A proof in one process lets the time of its venue stand still and pass. */
  clockMs?: () => number
}

export const openVenueEngine = <Venue extends Base<Event>, Command extends object, Event, Answer>({
  dataDir,
  machine,
  tick,
  onFatal,
  clockMs = Date.now,
}: Options<Venue, Command>): Engine<Venue, Command, Event, Answer> => {
  const { journal, venue, fresh } = openJournal(dataDir, machine, clockMs())
  // An offset that a test added to the clock stays over a restart.
  let offsetMs = Math.max(0, venue.state.nowMs - clockMs())
  const nowMs = () => clockMs() + offsetMs

  let lines: string[] = []
  let waiting: (() => void)[] = []
  let events: Event[] = []
  let eventListener: (events: readonly Event[]) => void = () => {}
  let appliedListener: ((command: Command) => void) | undefined
  let scheduled = false
  let savedMs = Date.now()

  const snapshotIfDue = (): void => {
    const { bytes, commands, snapshotBytes } = journal.size()
    const times = Math.max(1, snapshotBytes / snapshotEvery.bytes)
    const due = bytes > snapshotEvery.bytes * times || commands > snapshotEvery.commands * times
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

  const submit = (command: Command): Answer => {
    const atMs = Math.max(nowMs(), venue.state.nowMs)
    try {
      return machine.apply(venue, command, atMs) as Answer
    } catch (error) {
      if (error instanceof RequestError) throw error
      return onFatal(error)
    } finally {
      lines.push(writeLine(command, atMs))
      for (const event of venue.events) events.push(event)
      appliedListener?.(command)
      schedule()
    }
  }

  if (fresh) submit(tick)

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
      submit(tick)
    },
    onEvents: (next) => {
      eventListener = next
    },
    onApplied: (listener) => {
      appliedListener = listener
    },
    close: () => {
      flush()
      journal.snapshot(venue)
      journal.close()
    },
  }
}
