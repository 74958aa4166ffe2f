import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Terminal, UsageError } from './terminal.ts'

/** The files of the command line: JSON, readable by their owner alone. */
export const configPath = ({ env, home }: Terminal, name: string): string =>
  join(env.XDG_CONFIG_HOME || join(home, '.config'), 'portico', name)

/** `command` makes the file anew. */
export function readConfig<T>(terminal: Terminal, name: string, command: string): Partial<T> | undefined {
  const path = configPath(terminal, name)
  if (!existsSync(path)) return undefined
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof read === 'object' && read !== null) return read as Partial<T>
  } catch {
    // Answered below, without what the file holds.
  }
  throw new UsageError(`${path} is not readable; remove it and run ${command}`)
}

/** Readable by this account alone, from the first byte on, and whole at every moment. */
export function writeConfig(terminal: Terminal, name: string, value: object): string {
  const path = configPath(terminal, name)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const written = `${path}.${randomUUID()}`
  writeFileSync(written, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(written, path)
  return path
}
