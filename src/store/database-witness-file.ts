import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * What this instance last saw of a database: one file per database in the data folder. The files are outside the
 * database and outside the folder of the embedded cluster, so `backup` does not copy them and `restore` does not
 * replace them.
 */
export type WitnessFile = {
  read(database: string): WitnessRecord | undefined
  write(database: string, record: WitnessRecord): void
  /**
   * Records that a backup is being restored here. The mark stays until the restored database itself records the hold on
   * money.
   */
  markRestored(): void
  isRestored(): boolean
  forgetRestored(): void
}
export type WitnessRecord = {
  witness: string
  generation: number
  beat: number
  system: string | null
  timeline: number | null
  lsn: string | null
  point?: string | null
}

export function createWitnessFile(dataDir: string): WitnessFile {
  const folder = join(dataDir, 'database-time')
  const pathOf = (database: string) => join(folder, `${database}.json`)
  const mark = join(folder, 'restored')
  return {
    markRestored() {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      writeFileSync(mark, '', { mode: 0o600, flush: true })
    },
    isRestored: () => existsSync(mark),
    forgetRestored: () => rmSync(mark, { force: true }),
    read(database) {
      try {
        const found: unknown = JSON.parse(readFileSync(pathOf(database), 'utf8'))
        return isWitnessRecord(found) ? found : undefined
      } catch (error) {
        // A file that a loss of power cut short counts as missing; the database is then compared with the blockchains.
        if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT')
          return undefined
        throw error
      }
    },
    write(database, record) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const draft = `${pathOf(database)}.new`
      writeFileSync(draft, JSON.stringify(record), { mode: 0o600 })
      renameSync(draft, pathOf(database))
    },
  }
}

const isWitnessRecord = (found: unknown): found is WitnessRecord =>
  isRecord(found) &&
  typeof found.witness === 'string' &&
  typeof found.generation === 'number' &&
  typeof found.beat === 'number'
