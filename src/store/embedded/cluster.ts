import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { StoreRefusal } from '#store/operator-error.ts'
import { type Binaries, spawnOptions } from './binaries.ts'
import {
  type Account,
  type ClusterPaths,
  errorCode,
  errorMessage,
  isAlive,
  processExists,
  socketPort,
  syncFolder,
} from './cluster-paths.ts'

export type Address = { host: string; port: number; password?: string }

export type Settings = Readonly<Record<string, string>>

const run = promisify(execFile)
const windows = process.platform === 'win32'
export const superuser = 'portico'
const logBytesMax = 8 * 1024 * 1024
const createMsMax = 120_000
/** How long a fast shutdown may take; a gateway whose own stop is forced ends the server earlier. */
const fastMsMax = 10_000
/** How long a fast shutdown may take once the stop of the gateway is forced. */
const forcedFastMsMax = 1_000
/** How long a stop may take in all: the server kills children that ignore an immediate shutdown after 5 s. */
const stopMsMax = 17_000
/** This number is above every system's limit on process ids, so no process has it. */
const unusedPid = 2_147_483_647

export function majorOf(paths: ClusterPaths): number | undefined {
  const content = readIfPresent(join(paths.data, 'PG_VERSION'))
  return content === undefined ? undefined : Number.parseInt(content, 10)
}

/** PostgreSQL generates the system identifier once per cluster and stores it at the start of its control file. */
export function systemIdentifier(paths: ClusterPaths): string {
  const bytes = readFileSync(join(paths.data, 'global', 'pg_control'))
  return bytes.readBigUInt64LE(0).toString()
}

/** Returns the server's address; undefined on Windows while no server runs, because the pid file has the port. */
export function addressOf(paths: ClusterPaths): Address | undefined {
  if (!windows) return { host: paths.socketDir, port: socketPort }
  const port = Number(pidFile(paths)?.[3])
  const password = readIfPresent(join(paths.home, 'password'))?.trim()
  return port > 0 && password ? { host: '127.0.0.1', port, password } : undefined
}

/** The cluster is renamed once complete, so a crash leaves no partial one; the loser of a race uses the winner's. */
export async function initCluster(
  paths: ClusterPaths,
  binaries: Binaries,
  { durable, stopped }: { durable: boolean; stopped: AbortSignal },
): Promise<void> {
  const draft = `${paths.data}.tmp-${process.pid}-${randomBytes(4).toString('hex')}`
  mkdirSync(draft, { mode: 0o700 })
  if (paths.account) lchownSync(draft, paths.account.uid, paths.account.gid)
  const words = ['-D', draft, '-U', superuser, '--no-locale', '-E', 'UTF8', '--data-checksums']
  words.push(...(windows ? ['-A', 'scram-sha-256', `--pwfile=${passwordFile(paths)}`] : ['-A', 'trust']))
  if (!durable) words.push('--no-sync')
  try {
    await runInitdb(binaries.initdb, words, { account: paths.account, stopped })
    renameSync(draft, paths.data)
    syncFolder(paths.home)
  } catch (cause) {
    rmSync(draft, { recursive: true, force: true })
    if (majorOf(paths) !== undefined) return
    throw new StoreRefusal(`The database could not be created in ${paths.data}: ${errorMessage(cause)}`, {
      cause,
    })
  }
}

/** initdb leads a process group of its own, so that the servers that it runs end with it. */
async function runInitdb(
  command: string,
  words: string[],
  { account, stopped }: { account: Account | undefined; stopped: AbortSignal },
): Promise<void> {
  const limit = AbortSignal.any([stopped, AbortSignal.timeout(createMsMax)])
  limit.throwIfAborted()
  const child = spawn(command, words, {
    ...spawnOptions(account),
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: !windows,
  })
  let errorText = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    errorText += chunk.toString()
  })
  const kill = () => (windows ? child.kill('SIGKILL') : child.pid && signal(-child.pid, 'SIGKILL'))
  limit.addEventListener('abort', kill, { once: true })
  const [code, signalName] = await once(child, 'close').finally(() =>
    limit.removeEventListener('abort', kill),
  )
  if (code !== 0) throw new Error(errorText.trim() || `initdb ended with ${code ?? signalName}`)
}

export type LaunchedServer = { process: ChildProcess; failureText(): string }

export const hasEnded = ({ process: { exitCode, signalCode } }: LaunchedServer): boolean =>
  exitCode !== null || signalCode !== null

/** The server is detached, so that Ctrl-C does not stop it before the gateway has finished its work. */
export async function launchServer(
  paths: ClusterPaths,
  binaries: Binaries,
  settings: Settings,
): Promise<LaunchedServer> {
  removeStaleDrafts(paths)
  replaceStalePid(paths)
  if (paths.account) allowOnlyRoot(paths, paths.account)
  const log = openLog(paths)
  const offset = fstatSync(log).size
  const port = windows ? await freePort() : socketPort
  const all: Settings = {
    listen_addresses: windows ? '127.0.0.1' : '',
    ...(!windows && { unix_socket_directories: paths.socketDir, unix_socket_permissions: '0700' }),
    port: String(port),
    shared_buffers: '64MB',
    max_connections: '60',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    ...settings,
  }
  const words = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const options = {
    ...spawnOptions(paths.account),
    stdio: ['ignore', log, log] as ['ignore', number, number],
  }
  // On Windows an administrator cannot run postgres; pg_ctl drops the privilege first.
  const child = windows
    ? spawn(
        binaries.pgCtl,
        ['start', '-W', '-D', paths.data, '-o', words.map(quoteArgument).join(' ')],
        options,
      )
    : spawn(binaries.postgres, ['-D', paths.data, ...words], { ...options, detached: true })
  closeSync(log)
  child.unref()
  let failure = ''
  child.on('error', (error) => {
    failure = error.message
  })
  return { process: child, failureText: () => failure || tailOf(paths.log, offset) }
}

type StopOptions = { forced?: AbortSignal | undefined; pgCtl?: string | undefined }

export async function stopServer(paths: ClusterPaths, { forced, pgCtl }: StopOptions = {}): Promise<boolean> {
  const pid = postmasterPid(paths)
  if (pid === undefined) return true
  if (windows && pgCtl) {
    const words = ['stop', '-D', paths.data, '-m', 'fast', '-t', String(stopMsMax / 1000)]
    await run(pgCtl, words, spawnOptions(undefined)).catch(() => {})
    return postmasterPid(paths) !== pid
  }
  return shutDown({
    send: (name) => signal(pid, name),
    // The pid file is deleted after the final checkpoint. The process id proves nothing, since a zombie has it.
    isRunning: () => postmasterPid(paths) === pid,
    forced,
  })
}

/** Stops a server that may not accept connections yet. */
export const abortLaunch = (launched: LaunchedServer, forced: AbortSignal | undefined): Promise<boolean> =>
  shutDown({
    send: (name) => launched.process.kill(name),
    isRunning: () => !hasEnded(launched),
    forced,
  })

/** The fast shutdown comes first, because a SIGTERM would wait for every client to disconnect. */
async function shutDown({
  send,
  isRunning,
  forced,
}: {
  send: (name: 'SIGINT' | 'SIGQUIT') => void
  isRunning: () => boolean
  forced: AbortSignal | undefined
}): Promise<boolean> {
  const startedMs = performance.now()
  let isImmediate = false
  send('SIGINT')
  while (isRunning()) {
    const elapsedMs = performance.now() - startedMs
    if (elapsedMs > stopMsMax) return false
    if (!isImmediate && elapsedMs > (forced?.aborted ? forcedFastMsMax : fastMsMax)) {
      isImmediate = true
      send('SIGQUIT')
    }
    await delay(10)
  }
  return true
}

export function postmasterPid(paths: ClusterPaths): number | undefined {
  const pid = Number(pidFile(paths)?.[0])
  return pid > 0 && pid !== unusedPid && isAlive(pid) ? pid : undefined
}

const pidFile = (paths: ClusterPaths) => readIfPresent(join(paths.data, 'postmaster.pid'))?.split('\n')

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/**
 * After a reboot, or in a new container, the process id in postmaster.pid may belong to an unrelated process,
 * and PostgreSQL would never start. The id is replaced and the file stays, because it also names the shared
 * memory by which PostgreSQL detects that children of a killed server are still writing.
 */
function replaceStalePid(paths: ClusterPaths): void {
  const lines = pidFile(paths)
  const pid = Number(lines?.[0])
  if (!lines || process.platform !== 'linux' || !processExists(pid)) return
  const command = readIfPresent(`/proc/${pid}/comm`)?.trim()
  if (command === undefined || (command.startsWith('postgres') && isAlive(pid))) return
  const draft = join(paths.home, `postmaster.pid.${process.pid}`)
  writeFileSync(draft, [unusedPid, ...lines.slice(1)].join('\n'), { mode: 0o600 })
  if (paths.account) lchownSync(draft, paths.account.uid, paths.account.gid)
  renameSync(draft, join(paths.data, 'postmaster.pid'))
}

/**
 * Under root the server runs as an account that other services may share, so connections are accepted only from
 * root's processes: peer authentication identifies the client's account.
 */
function allowOnlyRoot(paths: ClusterPaths, { uid, gid }: Account): void {
  const files = {
    'pg_hba.conf': 'local all all peer map=portico\n',
    'pg_ident.conf': `portico root ${superuser}\n`,
  }
  for (const [name, content] of Object.entries(files)) {
    const draft = join(paths.home, `${name}.${process.pid}`)
    writeFileSync(draft, content, { mode: 0o600, flag: 'wx' })
    lchownSync(draft, uid, gid)
    renameSync(draft, join(paths.data, name))
  }
}

function removeStaleDrafts(paths: ClusterPaths): void {
  for (const name of readdirSync(paths.home)) {
    const pid = /^data\.tmp-(\d+)-/.exec(name)?.[1]
    if (!pid || isAlive(Number(pid))) continue
    try {
      rmSync(join(paths.home, name), { recursive: true, force: true })
    } catch {
      // The initdb of this folder outlived its parent process and still writes; a later start deletes the folder.
    }
  }
}

function openLog(paths: ClusterPaths): number {
  try {
    if (statSync(paths.log).size > logBytesMax) renameSync(paths.log, `${paths.log}.old`)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
  // The server's account owns the folder, so a link in it could redirect root's write.
  const { O_APPEND, O_CREAT, O_WRONLY } = constants
  const log = openSync(paths.log, O_APPEND | O_CREAT | O_WRONLY | (constants.O_NOFOLLOW ?? 0), 0o600)
  if (paths.account) fchownSync(log, paths.account.uid, paths.account.gid)
  return log
}

function tailOf(path: string, offset: number): string {
  const log = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(Math.min(Math.max(fstatSync(log).size - offset, 0), 4096))
    readSync(log, bytes, 0, bytes.length, offset)
    return bytes.toString('utf8').trim()
  } finally {
    closeSync(log)
  }
}

function passwordFile(paths: ClusterPaths): string {
  const path = join(paths.home, 'password')
  try {
    writeFileSync(path, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
  return path
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  return port
}

const quoteArgument = (word: string) =>
  /[\s"]/.test(word) || word === '' ? `"${word.replaceAll('"', '\\"')}"` : word

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
