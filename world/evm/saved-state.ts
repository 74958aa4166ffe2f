import { createReadStream, createWriteStream } from 'node:fs'
import { open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGunzip, createGzip, gunzip } from 'node:zlib'

type Block = { header: { number: string }; transactions: unknown[] }
type Mined = { block_number: number | string }
type State = { best_block_number: number | string; blocks: Block[]; transactions?: Mined[] }

const inflate = promisify(gunzip)
/** Longer text does not fit into one string of this engine. */
const parsedBytesMax = 400_000_000
const retainedEmptyBlocks = 256

const parse = (text: Buffer): State | undefined => {
  if (text.length > parsedBytesMax) return undefined
  try {
    const state = JSON.parse(text.toString()) as State
    return Array.isArray(state.blocks) ? state : undefined
  } catch {
    return undefined
  }
}

/** Too large to parse: checks that the outermost brace ends the file, as only a complete one does. */
const hasBalancedBraces = async (path: string): Promise<boolean> => {
  let depth = 0
  let inText = false
  let escaped = false
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
    for (const byte of chunk) {
      if (escaped) escaped = false
      else if (inText) {
        if (byte === 0x5c) escaped = true
        else if (byte === 0x22) inText = false
      } else if (byte === 0x22) inText = true
      else if (byte === 0x7b || byte === 0x5b) depth += 1
      else if (byte === 0x7d || byte === 0x5d) depth -= 1
    }
  return depth === 0 && !inText
}

const isCompleteState = async (path: string): Promise<boolean> => {
  const { size } = await stat(path)
  if (size === 0) return false
  return size > parsedBytesMax ? hasBalancedBraces(path) : parse(await readFile(path)) !== undefined
}

/**
 * Reduces the history that a node loads: the transactions of the newest blocks, their blocks, and the newest empty
 * ones.
 */
export const compacted = (state: State, retainedBlocks: number): State => {
  const best = Number(state.best_block_number)
  const blocks = state.blocks.filter(({ header, transactions }) => {
    const number = Number(header.number)
    return number === 0 || number > best - (transactions.length > 0 ? retainedBlocks : retainedEmptyBlocks)
  })
  const mined = state.transactions?.filter((each) => Number(each.block_number) > best - retainedBlocks)
  return mined === undefined ? { ...state, blocks } : { ...state, blocks, transactions: mined }
}

const timeOf = async (path: string) => (await stat(path).catch(() => undefined))?.mtimeMs

/**
 * Files of one chain. We write `saved` atomically, first when seeding is complete: its existence marks a finished
 * world. Anvil writes `exit` when it ends; a kill can leave it incomplete, and it counts only beside a `saved`. A file
 * that cannot be read is set aside, never removed.
 */
export type SavedState = ReturnType<typeof savedState>

export const savedState = (dir: string, id: string, retainedBlocks: number) => {
  const saved = join(dir, `${id}.state.gz`)
  const exit = join(dir, `${id}.exit.json`)
  const loaded = join(dir, `${id}.load.json`)
  /** The uncompressed form of earlier versions. */
  const earlier = join(dir, `${id}.saved.json`)

  let replacing: Promise<void> = Promise.resolve()
  let drafts = 0
  /** A save at the end may meet one in progress: each has its own draft, and they run one after the other. */
  const replace = (writeDraft: (path: string) => Promise<void>): Promise<void> => {
    const replacement = replacing.then(async () => {
      drafts += 1
      const draft = `${saved}.${process.pid}-${drafts}.draft`
      try {
        await writeDraft(draft)
        await rename(draft, saved)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
    })
    replacing = replacement.catch(() => {})
    return replacement
  }

  /** Incomplete drafts of a killed process. */
  const removeDrafts = async (): Promise<void> => {
    const names = await readdir(dir).catch(() => [])
    const left = names.filter((name) => name.startsWith(`${id}.state.gz.`) && name.endsWith('draft'))
    await Promise.all(left.map((name) => rm(join(dir, name), { force: true })))
  }

  const compress = async (from: string): Promise<void> => {
    await replace((draft) =>
      pipeline(createReadStream(from), createGzip({ level: 1 }), createWriteStream(draft, { mode: 0o600 })),
    )
    await rm(from, { force: true })
  }

  const adoptExitFile = async (): Promise<void> => {
    const [savedAt, exitAt] = [await timeOf(saved), await timeOf(exit)]
    if (exitAt === undefined) return
    if (savedAt === undefined || exitAt < savedAt) await rm(exit, { force: true })
    else if (await isCompleteState(exit)) await compress(exit)
    else await rename(exit, join(dir, `${id}.exit.unreadable.json`))
  }

  /** The file to load, made from the newest state; undefined when the chain starts empty. */
  const prepare = async (): Promise<string | undefined> => {
    await removeDrafts()
    if ((await timeOf(saved)) === undefined && (await timeOf(earlier)) !== undefined) await compress(earlier)
    await adoptExitFile()
    if ((await timeOf(saved)) === undefined) return undefined
    try {
      // The last four bytes of the format hold the uncompressed length.
      const file = await open(saved)
      const { size } = await file.stat()
      const compression = Buffer.alloc(4)
      await file.read(compression, 0, 4, size - 4).finally(() => file.close())
      if (compression.readUInt32LE(0) > parsedBytesMax) {
        await pipeline(createReadStream(saved), createGunzip(), createWriteStream(loaded, { mode: 0o600 }))
        return loaded
      }
      const state = parse(await inflate(await readFile(saved)))
      if (!state) throw new Error('it is not the state of a chain')
      await writeFile(loaded, JSON.stringify(compacted(state, retainedBlocks)), { mode: 0o600 })
      return loaded
    } catch (cause) {
      const reason = (cause as Error).message
      throw new Error(
        `${saved} cannot be read (${reason}); restore it, or move it away for an empty chain.`,
        {
          cause,
        },
      )
    }
  }

  return {
    exit,
    prepare,
    removeLoaded: () => rm(loaded, { force: true }),
    /** `dump` writes the gzipped state of the node into the given file. */
    write: replace,
  }
}
