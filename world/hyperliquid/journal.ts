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
import type { Book } from '#world/venue-core/book.ts'
import { apply, type Command } from './apply.ts'
import { type Archive, createArchive, type Stored } from './archive.ts'
import { RequestError } from './errors.ts'
import { matchRules } from './settlement.ts'
import type { State } from './state.ts'
import { createVenue, newState, type Venue } from './venue.ts'

/**
 * A snapshot and the commands since. A command is written before its effects are published, so a killed process loses
 * nothing that was acknowledged. The write is not synced: it protects against the death of this process, not of the
 * machine. Snapshots are synced, because the log that they replace is removed.
 */
export type Journal = {
  append: (lines: string) => void
  snapshot: (venue: Venue) => void
  /** Bytes and commands since the last snapshot. */
  size: () => { bytes: number; commands: number }
  close: () => void
}

type Books = [asset: number, orders: ReturnType<Book['orders']>][]
/** The first version had every order and fill in the snapshot. */
type StoredSnapshot = { version: 1; state: State; books: Books } | (Stored & { version: 2; books: Books })

const snapshotName = 'venue.snapshot'
const logName = (sequence: number): string => `events-${sequence}.log`

export const writeLine = (command: Command, atMs: number): string =>
  `${JSON.stringify({ at: atMs, ...command }, (_key, value) => (typeof value === 'bigint' ? value.toString() : value))}\n`

const readLine = (line: string): { command: Command; atMs: number } => {
  const { at, ...command } = JSON.parse(line)
  if ('units' in command) command.units = BigInt(command.units)
  return { command: command as Command, atMs: at }
}

/** Replays the log. A command that was rejected then is rejected again. */
export const replay = (venue: Venue, command: Command, atMs: number): void => {
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

const writeSynced = (path: string, content: Buffer): void => {
  const file = openSync(path, 'w')
  for (let at = 0; at < content.length; ) at += writeSync(file, content, at)
  fsyncSync(file)
  closeSync(file)
}

const restore = (saved: StoredSnapshot, archive: Archive): Venue => {
  const state = saved.version === 1 ? saved.state : archive.restore(saved)
  const venue = createVenue(state, matchRules)
  for (const [asset, orders] of saved.books) venue.books.get(asset)?.restore(orders)
  return venue
}

/** A process killed while writing leaves an incomplete line, whose command was not acknowledged. */
const dropTornLine = (path: string, content: Buffer): string[] => {
  const end = content.lastIndexOf(0x0a) + 1
  if (end < content.length) truncateSync(path, end)
  return content.subarray(0, end).toString('utf8').split('\n').filter(Boolean)
}

export const openJournal = (
  dataDir: string,
  seed: number,
  nowMs: number,
): { journal: Journal; venue: Venue; fresh: boolean } => {
  const snapshotPath = join(dataDir, snapshotName)
  const stored = readIfPresent(snapshotPath)
  const saved = stored ? (deserialize(stored) as StoredSnapshot) : undefined
  const archive = createArchive(dataDir)
  const venue = saved ? restore(saved, archive) : createVenue(newState(seed, nowMs), matchRules)
  let base = venue.state.sequence
  const path = join(dataDir, logName(base))
  const lines = saved ? dropTornLine(path, readIfPresent(path) ?? Buffer.alloc(0)) : []
  for (const line of lines) {
    const { command, atMs } = readLine(line)
    replay(venue, command, atMs)
  }
  for (const name of readdirSync(dataDir))
    if (/^events-[0-9]+\.log$/.test(name) && name !== logName(base)) rmSync(join(dataDir, name))

  let log = -1
  let bytes = 0
  let commands = lines.length

  const snapshot = (source: Venue): void => {
    const content: StoredSnapshot = {
      ...archive.store(source.state, writeSynced),
      version: 2,
      books: [...source.books].map(([asset, book]) => [asset, book.orders()]),
    }
    const draft = `${snapshotPath}.draft`
    writeSynced(draft, serialize(content))
    renameSync(draft, snapshotPath)
    archive.removeUnneeded()
    if (log >= 0) closeSync(log)
    const old = logName(base)
    base = source.state.sequence
    log = openSync(join(dataDir, logName(base)), 'a')
    if (old !== logName(base)) rmSync(join(dataDir, old), { force: true })
    bytes = 0
    commands = 0
  }

  if (saved) log = openSync(path, 'a')
  else snapshot(venue)
  const journal: Journal = {
    append: (text) => {
      bytes += writeSync(log, text)
      commands += 1
    },
    snapshot,
    size: () => ({ bytes, commands }),
    close: () => closeSync(log),
  }
  return { journal, venue, fresh: saved === undefined }
}
