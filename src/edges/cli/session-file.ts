import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { TokenStore } from '#sdk/oauth-session.ts'
import type { OAuthTokens } from '#sdk/oauth-sign-in.ts'
import { configPath, readConfig, writeConfig } from './config-files.ts'
import { type Terminal, UsageError } from './terminal.ts'

export type Session = { base_url: string; tokens: OAuthTokens }

const fileName = 'session.json'

export const readSession = (terminal: Terminal): Session | undefined => {
  const read = readConfig<Session>(terminal, fileName, 'portico login')
  if (!read) return undefined
  const { base_url, tokens } = read
  if (base_url && tokens?.accessToken && tokens.tokenEndpoint) return { base_url, tokens }
  throw new UsageError(`${configPath(terminal, fileName)} has no tokens; remove it and run portico login`)
}

/** Stores the tokens in the file, shared by all commands that run on this machine. */
export function sessionStore(terminal: Terminal, baseUrl: string): TokenStore {
  const path = configPath(terminal, fileName)
  return {
    async read() {
      const session = readSession(terminal)
      return session?.base_url === baseUrl ? session.tokens : undefined
    },
    async write(tokens) {
      if (tokens) writeConfig(terminal, fileName, { base_url: baseUrl, tokens })
      else rmSync(path, { force: true })
    },
    exclusive: (run) => withFileLock(`${path}.lock`, run),
  }
}

/** The holder of the lock makes one request of at most 15 s, so an older lock is that of a killed process. */
const staleMs = 60_000
const pollMs = 25

async function withFileLock<T>(path: string, run: () => Promise<T>): Promise<T> {
  const holder = randomUUID()
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  while (!take(path, holder)) {
    releaseStale(path, holder)
    await delay(pollMs)
  }
  try {
    return await run()
  } finally {
    if (holderOf(path) === holder) rmSync(path, { force: true })
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code

function take(path: string, holder: string): boolean {
  try {
    writeFileSync(path, holder, { mode: 0o600, flag: 'wx' })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

function holderOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The lock is renamed before it is removed, so that only one of several waiters removes it. */
function releaseStale(path: string, holder: string): void {
  try {
    if (Date.now() - statSync(path).mtimeMs < staleMs) return
    renameSync(path, `${path}.${holder}`)
    rmSync(`${path}.${holder}`, { force: true })
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
