import { readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { replaceFile } from '#world/atomic-file.ts'

type Block = { header: { number: string }; transactions: unknown[] }
type State = { best_block_number: number | string; blocks: Block[] }

const inflate = promisify(gunzip)
const compactAboveBytes = 8_000_000
const keepEmptyBlocks = 256

const parse = async (path: string): Promise<State | undefined> => {
  try {
    const state = JSON.parse(await readFile(path, 'utf8')) as State
    return Array.isArray(state.blocks) ? state : undefined
  } catch {
    return undefined
  }
}

/**
 * Where one chain lives on disk. `saved` is written by us, whole or not at all, and first when seeding is
 * complete: its existence is the mark of a finished world. `exit` is what anvil itself writes when it ends; it
 * can be torn by a kill, and it counts only beside a `saved`.
 */
export const savedState = (dir: string, id: string) => {
  const saved = join(dir, `${id}.saved.json`)
  const exit = join(dir, `${id}.exit.json`)

  /** The file to load, or undefined when the chain must be made from nothing. */
  const newest = async (): Promise<string | undefined> => {
    const savedAt = (await stat(saved).catch(() => undefined))?.mtimeMs
    const exitAt = (await stat(exit).catch(() => undefined))?.mtimeMs
    const usable = savedAt !== undefined && exitAt !== undefined && exitAt >= savedAt && (await parse(exit))
    if (usable) await rename(exit, saved)
    else await rm(exit, { force: true })
    return savedAt === undefined ? undefined : saved
  }

  /** Empty blocks pile up while nobody trades; old ones are forgotten, those with transactions never. */
  const compact = async (): Promise<void> => {
    if ((await stat(saved)).size < compactAboveBytes) return
    const state = await parse(saved)
    if (!state) return
    const oldest = Number(state.best_block_number) - keepEmptyBlocks
    const blocks = state.blocks.filter(
      ({ header, transactions }) =>
        transactions.length > 0 || Number(header.number) > oldest || Number(header.number) === 0,
    )
    if (blocks.length < state.blocks.length) await replaceFile(saved, JSON.stringify({ ...state, blocks }))
  }

  return {
    exit,
    newest,
    compact,
    /** Takes the answer of anvil_dumpState: gzipped JSON in hex. */
    write: async (dump: string) => replaceFile(saved, await inflate(Buffer.from(dump.slice(2), 'hex'))),
  }
}
