import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { RequestError } from './request-error.ts'

export type WriteFile = (path: string, content: Buffer) => void

/** A venue as data and commands: the same commands at the same times give the same state. */
export type Machine<Venue, Command> = {
  create: (nowMs: number) => Venue
  apply: (venue: Venue, command: Command, atMs: number) => unknown
  sequenceOf: (venue: Venue) => number
  /** The content of a snapshot, and the reverse. `write` is for files that the snapshot refers to. */
  store: (venue: Venue, write: WriteFile) => unknown
  restore: (stored: unknown) => Venue
  /** Called after a snapshot has replaced the one before. */
  afterSnapshot?: () => void
  /** JSON has no bigint: turns the fields of a read command into what `apply` takes. */
  revive: (command: Record<string, unknown>) => Command
}

/**
 * A snapshot and the commands since. A command is written before its effects are published, so a killed process loses
 * nothing that was acknowledged. The write is not synced: it protects against the death of this process, not of the
 * machine. Snapshots are synced, because the log that they replace is removed.
 */
export type Journal<Venue> = {
  append: (lines: string) => void
  snapshot: (venue: Venue) => void
  /** Bytes and commands since the last snapshot, and its own bytes. */
  size: () => { bytes: number; commands: number; snapshotBytes: number }
  close: () => void
}

const snapshotName = 'venue.snapshot'
const logName = (sequence: number): string => `events-${sequence}.log`

export const writeLine = (command: object, atMs: number): string =>
  `${JSON.stringify({ at: atMs, ...command }, (_key, value) => (typeof value === 'bigint' ? value.toString() : value))}\n`

/** Replays the log. A command that was rejected then is rejected again. */
export const replay = <Venue, Command>(
  { apply }: Pick<Machine<Venue, Command>, 'apply'>,
  venue: Venue,
  command: Command,
  atMs: number,
): void => {
  try {
    apply(venue, command, atMs)
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
  }
}

const readIfPresent = (path: string): Buffer | undefined => {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

const writeSynced: WriteFile = (path, content) => {
  const file = openSync(path, 'w')
  for (let at = 0; at < content.length; ) at += writeSync(file, content, at)
  fsyncSync(file)
  closeSync(file)
}

/** A process killed while writing leaves an incomplete line, whose command was not acknowledged. */
const dropTornLine = (path: string, content: Buffer): string[] => {
  const end = content.lastIndexOf(0x0a) + 1
  if (end < content.length) truncateSync(path, end)
  return content.subarray(0, end).toString('utf8').split('\n').filter(Boolean)
}

const removeOldLogs = (dataDir: string, current: string): void => {
  for (const name of readdirSync(dataDir))
    if (/^events-[0-9]+\.log$/.test(name) && name !== current) rmSync(join(dataDir, name))
}

const restoreVenue = <Venue, Command>(
  dataDir: string,
  machine: Machine<Venue, Command>,
  nowMs: number,
): { venue: Venue; lines: number; base: number; fresh: boolean; snapshotBytes: number } => {
  const stored = readIfPresent(join(dataDir, snapshotName))
  const venue = stored ? machine.restore(deserialize(stored)) : machine.create(nowMs)
  const base = machine.sequenceOf(venue)
  const path = join(dataDir, logName(base))
  const lines = stored ? dropTornLine(path, readIfPresent(path) ?? Buffer.alloc(0)) : []
  for (const line of lines) {
    const { at, ...command } = JSON.parse(line)
    replay(machine, venue, machine.revive(command), at)
  }
  removeOldLogs(dataDir, logName(base))
  const snapshotBytes = stored?.length ?? 0
  return { venue, lines: lines.length, base, fresh: stored === undefined, snapshotBytes }
}

export const openJournal = <Venue, Command>(
  dataDir: string,
  machine: Machine<Venue, Command>,
  nowMs: number,
): { journal: Journal<Venue>; venue: Venue; fresh: boolean } => {
  const restored = restoreVenue(dataDir, machine, nowMs)
  const snapshotPath = join(dataDir, snapshotName)
  let { base, lines: commands, snapshotBytes } = restored
  let log = -1
  let bytes = 0

  const snapshot = (source: Venue): void => {
    const content = serialize(machine.store(source, writeSynced))
    const draft = `${snapshotPath}.draft`
    writeSynced(draft, content)
    renameSync(draft, snapshotPath)
    machine.afterSnapshot?.()
    if (log >= 0) closeSync(log)
    const old = logName(base)
    base = machine.sequenceOf(source)
    log = openSync(join(dataDir, logName(base)), 'a')
    if (old !== logName(base)) rmSync(join(dataDir, old), { force: true })
    bytes = 0
    commands = 0
    snapshotBytes = content.length
  }

  if (restored.fresh) snapshot(restored.venue)
  else log = openSync(join(dataDir, logName(base)), 'a')
  const journal: Journal<Venue> = {
    append: (text) => {
      bytes += writeSync(log, text)
      commands += 1
    },
    snapshot,
    size: () => ({ bytes, commands, snapshotBytes }),
    close: () => closeSync(log),
  }
  return { journal, venue: restored.venue, fresh: restored.fresh }
}
