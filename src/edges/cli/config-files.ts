import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Terminal, UsageError } from './terminal.ts'

/** The command line stores its files as JSON that only their owner can read. */
export const configPath = ({ env, home }: Terminal, name: string): string =>
  join(env.XDG_CONFIG_HOME || join(home, '.config'), 'portico', name)

/** `command` is the command that makes a damaged file again. */
export function readConfig<T>(terminal: Terminal, name: string, command: string): Partial<T> | undefined {
  const path = configPath(terminal, name)
  if (!existsSync(path)) return undefined
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof read === 'object' && read !== null) return read as Partial<T>
  } catch {
    // A file that is no JSON leads to the error below, which does not quote the content of the file.
  }
  throw new UsageError(`${path} is not readable; remove it and run ${command}`)
}

/** Writes a file so that only this account can ever read it, and nobody reads it half written. */
export function writeConfig(terminal: Terminal, name: string, value: object): string {
  const path = configPath(terminal, name)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const written = `${path}.${randomUUID()}`
  writeFileSync(written, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(written, path)
  return path
}
