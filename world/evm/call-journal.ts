import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

type Hex = `0x${string}`

/** Block and position of a mined transaction. */
export type MinedAt = { hash: Hex; block: number; index: number; atSeconds: number }
/**
 * A signed transaction, the fields of a transaction whose sender's key the node does not hold, or a write to the state.
 */
export type AcceptedCall =
  | { raw: Hex }
  | { unsigned: Record<string, unknown>; hash: Hex }
  | { method: string; params: unknown }
export type JournalEntry = { n: number; takenSeconds: number; call: AcceptedCall; mined?: MinedAt }

type JournalLine =
  | { n: number; takenSeconds: number; call: AcceptedCall }
  | { n: number; refused: true }
  | { n: number; mined: MinedAt }
  | { n: number; removed: true }

export type CallJournal = ReturnType<typeof callJournal>

/**
 * Calls that a chain accepted since its last save, in files beside the saved state. A line is written before the node
 * receives the call, so that a kill of all processes loses nothing that a client saw; it is not synced, because that
 * only helps when the machine fails. Each save begins a new file, and the saved state names the first file that it does
 * not contain.
 */
export const callJournal = (dir: string, id: string) => {
  const name = new RegExp(`^${id}\\.calls-(\\d+)\\.jsonl$`)
  const pathOf = (file: number) => join(dir, `${id}.calls-${file}.jsonl`)
  const files = (): number[] =>
    readdirSync(dir)
      .flatMap((each) => name.exec(each)?.slice(1) ?? [])
      .map(Number)
      .sort((a, b) => a - b)

  let entries = new Map<number, JournalEntry>()
  let unanswered = new Set<number>()
  let last = 0
  let log = -1
  let bytes = 0

  const write = (line: JournalLine): void => {
    // A line after the incomplete line of a failed write begins on a new line.
    bytes += writeSync(log, `\n${JSON.stringify(line)}\n`)
  }

  const applyLine = (line: JournalLine): void => {
    last = Math.max(last, line.n)
    if ('refused' in line) entries.delete(line.n)
    else if ('call' in line) entries.set(line.n, line)
    else {
      const entry = entries.get(line.n)
      if (entry && 'mined' in line) entry.mined = line.mined
      else delete entry?.mined
    }
  }

  const read = (file: number): void => {
    for (const text of readFileSync(pathOf(file), 'utf8').split('\n')) {
      if (text === '') continue
      try {
        applyLine(JSON.parse(text) as JournalLine)
      } catch {
        // The incomplete last line of a killed process: the node had not received that call.
      }
    }
  }

  /** Later lines go into a new file; returns its number. */
  const startFile = (): number => {
    last += 1
    if (log >= 0) closeSync(log)
    log = openSync(pathOf(last), 'a', 0o600)
    bytes = 0
    return last
  }

  return {
    startFile,
    /** Reads the files from the given one on, removes older ones, and begins another. */
    open: (from: number, minNumber: number): JournalEntry[] => {
      entries = new Map()
      unanswered = new Set()
      last = Math.max(last, minNumber)
      for (const file of files()) {
        last = Math.max(last, file)
        if (file < from) rmSync(pathOf(file), { force: true })
        else read(file)
      }
      startFile()
      return [...entries.values()]
    },
    /** Called before the node receives the call. */
    add: (call: AcceptedCall, takenSeconds: number): number => {
      const entry = { n: last + 1, takenSeconds, call }
      write(entry)
      applyLine(entry)
      unanswered.add(entry.n)
      return entry.n
    },
    markAnswered: (n: number): void => {
      unanswered.delete(n)
    },
    markRejected: (n: number): void => {
      write({ n, refused: true })
      unanswered.delete(n)
      entries.delete(n)
    },
    markMined: (n: number, mined: MinedAt): void => {
      if (!entries.has(n)) return
      write({ n, mined })
      applyLine({ n, mined })
    },
    /** The block of this transaction was removed from the chain. */
    markRemoved: (hash: Hex): void => {
      for (const { n, mined } of entries.values()) {
        if (mined?.hash !== hash) continue
        write({ n, removed: true })
        applyLine({ n, removed: true })
      }
    },
    has: (n: number): boolean => entries.has(n),
    entries: (): JournalEntry[] => [...entries.values()],
    isUnanswered: (n: number): boolean => unanswered.has(n),
    /** Writes an entry of an earlier file into the current one. */
    carryOver: ({ n, takenSeconds, call, mined }: JournalEntry): void => {
      write({ n, takenSeconds, call })
      if (mined) write({ n, mined })
    },
    /** Called when a saved state contains everything before this file, except `carried`. */
    removeBefore: (before: number, carried: ReadonlySet<number>): void => {
      for (const n of entries.keys()) if (n < before && !carried.has(n)) entries.delete(n)
      for (const file of files()) if (file < before) rmSync(pathOf(file), { force: true })
    },
    /** For a chain that starts empty. */
    clear: (): void => {
      for (const file of files()) rmSync(pathOf(file), { force: true })
    },
    bytes: () => bytes,
  }
}
