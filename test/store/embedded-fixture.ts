import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, lchownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { type Account, isAlive } from '#store/embedded/cluster-paths.ts'
import { type EmbeddedOptions, type EmbeddedPostgres, embeddedPostgres } from '#store/embedded-server.ts'
import { serverFolder } from '../harness/cluster.ts'

export type EmbeddedProcess = {
  process: ChildProcess
  /** The first line of this kind. */
  waitForLine<T>(word: 'progress' | 'ready' | 'refused'): Promise<T>
  close(): Promise<void>
  kill(): Promise<void>
}

export const isRoot = process.getuid?.() === 0
export const nobody = { uid: 65534, gid: 65534 }

/** The system's own folder, not the one that the environment names: the length of its path matters here. */
export function freshFolder(mode = 0o755, account?: Account): string {
  const folder = mkdtempSync('/tmp/portico-embedded-')
  chmodSync(folder, mode)
  if (account) lchownSync(folder, account.uid, account.gid)
  return folder
}

export type SpawnSettings = { account?: Account; path?: string }

function spawnEmbedded(
  options: Omit<EmbeddedOptions, 'progress'>,
  settings: SpawnSettings = {},
): EmbeddedProcess {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('./embedded-process.ts', import.meta.url)), JSON.stringify(options)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      ...settings.account,
      ...(settings.path !== undefined && { env: { PATH: settings.path } }),
    },
  )
  const lines: { word: string; value: unknown }[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    const end = line.indexOf(' ')
    lines.push({ word: line.slice(0, end), value: JSON.parse(line.slice(end + 1)) })
  })
  const exited = once(child, 'exit')
  return {
    process: child,
    waitForLine: async <T>(word: string) => {
      const line = await waitUntil(() => lines.find((each) => each.word === word), `an instance says ${word}`)
      return line.value as T
    },
    close: async () => {
      child.stdin.end()
      await exited
    },
    kill: async () => {
      if (child.exitCode === null) child.kill('SIGKILL')
      await exited
    },
  }
}

export async function waitUntil<T>(condition: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`Timed out waiting until ${what}`)
    await delay(10)
  }
}

/** Of the running server; 0 when none runs. */
export function postmasterOf(dataDir: string): number {
  try {
    const pid = Number(
      readFileSync(join(serverFolder(dataDir), 'data', 'postmaster.pid'), 'utf8').split('\n')[0],
    )
    return pid > 0 && isAlive(pid) ? pid : 0
  } catch {
    return 0
  }
}

export async function query<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** The postmaster and its child processes. */
export async function serverProcesses(url: string, dataDir: string): Promise<number[]> {
  const rows = await query<{ pid: number }>(
    url,
    'select pid from pg_stat_activity where pid <> pg_backend_pid()',
  )
  return [postmasterOf(dataDir), ...rows.map(({ pid }) => pid)]
}

/** Child processes end by themselves once the postmaster, the first one, is gone. */
export function killServer(pids: readonly number[]): void {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
}

/** Removes what a failed test left: the server first, then both of its folders. */
async function removeAll(dataDir: string, folder: string): Promise<void> {
  const pid = postmasterOf(dataDir)
  if (pid) process.kill(pid, 'SIGQUIT')
  await waitUntil(() => postmasterOf(dataDir) === 0, 'the server has ended')
  try {
    rmSync(serverFolder(dataDir), { recursive: true, force: true })
  } catch {
    // It ended before it had a home folder.
  }
  rmSync(folder, { recursive: true, force: true })
}

export type EmbeddedFixture = {
  dataDir: string
  /** In this process. */
  open(options?: Partial<EmbeddedOptions>): Promise<EmbeddedPostgres>
  /** In a process of its own. */
  spawn(options?: Partial<EmbeddedOptions>, spawning?: SpawnSettings): EmbeddedProcess
}

/** One data folder, and an end for everything that was started on it, after success and failure. */
export function embeddedFixture(
  t: TestContext,
  folderOptions: { mode?: number; account?: Account; below?: string[] } = {},
): EmbeddedFixture {
  const folder = freshFolder(folderOptions.mode, folderOptions.account)
  const dataDir = join(folder, ...(folderOptions.below ?? []))
  const opened: EmbeddedPostgres[] = []
  const spawned: EmbeddedProcess[] = []
  t.after(async () => {
    await Promise.all([...opened.map((each) => each.close()), ...spawned.map((each) => each.kill())])
    await removeAll(dataDir, folder)
  })
  return {
    dataDir,
    async open(options) {
      const server = await embeddedPostgres({ dataDir, fsync: false, ...options })
      opened.push(server)
      return server
    },
    spawn(options, spawning) {
      const started = spawnEmbedded({ dataDir, fsync: false, ...options }, spawning)
      spawned.push(started)
      return started
    },
  }
}
