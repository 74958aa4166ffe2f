import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

type Hex = `0x${string}`

/** Where a transaction was mined. */
export type Mined = { hash: Hex; block: number; index: number; atSeconds: number }
/** Bytes of a signed transaction, fields of one whose sender the node holds no key of, or a write into the state. */
export type Accepted =
  | { raw: Hex }
  | { unsigned: Record<string, unknown>; hash: Hex }
  | { method: string; params: unknown }
export type Entry = { n: number; takenSeconds: number; call: Accepted; mined?: Mined }

type Line =
  | { n: number; takenSeconds: number; call: Accepted }
  | { n: number; refused: true }
  | { n: number; mined: Mined }

export type CallJournal = ReturnType<typeof callJournal>

/**
 * What a chain accepted since its last save, in files beside the saved state. A line is written before the node
 * gets the call, so that the death of all processes loses nothing that anybody saw; it is not synced, as that would
 * only guard against the death of the machine. Each save begins a new file, and the saved state names the file from
 * which on it holds nothing.
 */
export const callJournal = (dir: string, id: string) => {
  const name = new RegExp(`^${id}\\.calls-(\\d+)\\.jsonl$`)
  const pathOf = (file: number) => join(dir, `${id}.calls-${file}.jsonl`)
  const files = (): number[] =>
    readdirSync(dir)
      .flatMap((each) => name.exec(each)?.slice(1) ?? [])
      .map(Number)
      .sort((a, b) => a - b)

  let entries = new Map<number, Entry>()
  let unanswered = new Set<number>()
  let last = 0
  let log = -1
  let bytes = 0

  const write = (line: Line): void => {
    // A line that follows half a line of a failed write stands alone.
    bytes += writeSync(log, `\n${JSON.stringify(line)}\n`)
  }

  const take = (line: Line): void => {
    last = Math.max(last, line.n)
    if ('refused' in line) entries.delete(line.n)
    else if ('call' in line) entries.set(line.n, line)
    else {
      const entry = entries.get(line.n)
      if (entry) entry.mined = line.mined
    }
  }

  const read = (file: number): void => {
    for (const text of readFileSync(pathOf(file), 'utf8').split('\n')) {
      if (text === '') continue
      try {
        take(JSON.parse(text) as Line)
      } catch {
        // The last line of a process that was killed: the node had not got that call yet.
      }
    }
  }

  /** Later lines go into a new file; returns its number. */
  const begin = (): number => {
    last += 1
    if (log >= 0) closeSync(log)
    log = openSync(pathOf(last), 'a', 0o600)
    bytes = 0
    return last
  }

  return {
    begin,
    /** Reads the files from the given one on, removes older ones, and begins another. */
    open: (from: number, least: number): Entry[] => {
      entries = new Map()
      unanswered = new Set()
      last = Math.max(last, least)
      for (const file of files()) {
        last = Math.max(last, file)
        if (file < from) rmSync(pathOf(file), { force: true })
        else read(file)
      }
      begin()
      return [...entries.values()]
    },
    /** Before the node gets the call. */
    add: (call: Accepted, takenSeconds: number): number => {
      const entry = { n: last + 1, takenSeconds, call }
      write(entry)
      take(entry)
      unanswered.add(entry.n)
      return entry.n
    },
    accepted: (n: number): void => {
      unanswered.delete(n)
    },
    refused: (n: number): void => {
      write({ n, refused: true })
      unanswered.delete(n)
      entries.delete(n)
    },
    mined: (n: number, mined: Mined): void => {
      if (!entries.has(n)) return
      write({ n, mined })
      take({ n, mined })
    },
    has: (n: number): boolean => entries.has(n),
    entries: (): Entry[] => [...entries.values()],
    isUnanswered: (n: number): boolean => unanswered.has(n),
    /** Writes an entry of an earlier file into the present one. */
    carry: ({ n, takenSeconds, call }: Entry): void => write({ n, takenSeconds, call }),
    /** A state is saved that holds what stood before this file; of that only `carried` is still needed. */
    drop: (before: number, carried: ReadonlySet<number>): void => {
      for (const n of entries.keys()) if (n < before && !carried.has(n)) entries.delete(n)
      for (const file of files()) if (file < before) rmSync(pathOf(file), { force: true })
    },
    /** For a chain that is made from nothing. */
    forget: (): void => {
      for (const file of files()) rmSync(pathOf(file), { force: true })
    },
    bytes: () => bytes,
  }
}
