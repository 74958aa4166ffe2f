import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
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
import { StoreRefusal } from '#store/refusal.ts'
import { type Binaries, spawnOptions } from './binaries.ts'
import { type Account, alive, codeOf, exists, type Place, socketPort, syncFolder, text } from './place.ts'

export type Address = { host: string; port: number; password?: string }

export type Settings = Readonly<Record<string, string>>

const run = promisify(execFile)
const windows = process.platform === 'win32'
export const superuser = 'portico'
const logBytesMax = 8 * 1024 * 1024
const stopFastMs = 8_000
const stopHardMs = 10_000
/** No process has it: larger than any limit of the system on process ids. */
const pidOfNobody = 2_147_483_647

/** The major version that wrote the data folder; undefined while there is none. */
export function majorOf(place: Place): number | undefined {
  const content = readIfPresent(join(place.data, 'PG_VERSION'))
  return content === undefined ? undefined : Number.parseInt(content, 10)
}

/** PostgreSQL draws this number once per cluster; its control file begins with it. */
export function systemIdentifier(place: Place): string {
  const bytes = readFileSync(join(place.data, 'global', 'pg_control'))
  return bytes.readBigUInt64LE(0).toString()
}

/** Where to connect; undefined when only a running server could tell and none has left word. */
export function addressOf(place: Place): Address | undefined {
  if (!windows) return { host: place.socketDir, port: socketPort }
  const port = Number(pidFile(place)?.[3])
  const password = readIfPresent(join(place.home, 'password'))?.trim()
  return port > 0 && password ? { host: '127.0.0.1', port, password } : undefined
}

/** Made aside and renamed, so that a crash leaves no half cluster; the loser of a race takes the winner's. */
export async function initCluster(place: Place, binaries: Binaries, durable: boolean): Promise<void> {
  const draft = `${place.data}.tmp-${process.pid}-${randomBytes(4).toString('hex')}`
  mkdirSync(draft, { mode: 0o700 })
  if (place.account) lchownSync(draft, place.account.uid, place.account.gid)
  const words = ['-D', draft, '-U', superuser, '--no-locale', '-E', 'UTF8', '--data-checksums']
  words.push(...(windows ? ['-A', 'scram-sha-256', `--pwfile=${passwordFile(place)}`] : ['-A', 'trust']))
  if (!durable) words.push('--no-sync')
  try {
    await run(binaries.initdb, words, { ...spawnOptions(place.account), timeout: 120_000 })
    renameSync(draft, place.data)
    syncFolder(place.home)
  } catch (cause) {
    rmSync(draft, { recursive: true, force: true })
    if (majorOf(place) !== undefined) return
    const reason = (cause as { stderr?: string }).stderr?.trim() || text(cause)
    throw new StoreRefusal(`The database could not be created in ${place.data}: ${reason}`, { cause })
  }
}

export type Launched = { process: ChildProcess; complaint(): string }

/** Detached, so that Ctrl-C in the terminal does not reach the server while we still finish work on it. */
export async function launchServer(place: Place, binaries: Binaries, settings: Settings): Promise<Launched> {
  sweepDrafts(place)
  disownStalePid(place)
  if (place.account) admitOnlyRoot(place, place.account)
  const log = openLog(place)
  const offset = fstatSync(log).size
  const port = windows ? await freePort() : socketPort
  const all: Settings = {
    listen_addresses: windows ? '127.0.0.1' : '',
    ...(!windows && { unix_socket_directories: place.socketDir, unix_socket_permissions: '0700' }),
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
    ...spawnOptions(place.account),
    stdio: ['ignore', log, log] as ['ignore', number, number],
  }
  // On Windows an administrator may not run postgres; pg_ctl gives the right up before it starts it.
  const child = windows
    ? spawn(binaries.pgCtl, ['start', '-W', '-D', place.data, '-o', words.map(quoted).join(' ')], options)
    : spawn(binaries.postgres, ['-D', place.data, ...words], { ...options, detached: true })
  closeSync(log)
  child.unref()
  let failure = ''
  child.on('error', (error) => {
    failure = error.message
  })
  return { process: child, complaint: () => failure || tailOf(place.log, offset) }
}

/** Fast shutdown: a plain SIGTERM would wait for every client to leave. */
export async function stopServer(place: Place, pgCtl?: string): Promise<boolean> {
  const pid = postmasterPid(place)
  if (pid === undefined) return true
  if (windows && pgCtl) {
    const words = ['stop', '-D', place.data, '-m', 'fast', '-t', String(stopHardMs / 1000)]
    await run(pgCtl, words, spawnOptions(undefined)).catch(() => {})
    return postmasterPid(place) !== pid
  }
  const started = performance.now()
  let hard = false
  signal(pid, 'SIGINT')
  // The file goes last, after the final checkpoint. The process id is no sign: a zombie keeps it.
  while (postmasterPid(place) === pid) {
    const elapsedMs = performance.now() - started
    if (elapsedMs > stopHardMs) return false
    if (elapsedMs > stopFastMs && !hard) hard = signal(pid, 'SIGQUIT')
    await delay(10)
  }
  return true
}

export function postmasterPid(place: Place): number | undefined {
  const pid = Number(pidFile(place)?.[0])
  return pid > 0 && pid !== pidOfNobody && alive(pid) ? pid : undefined
}

const pidFile = (place: Place) => readIfPresent(join(place.data, 'postmaster.pid'))?.split('\n')

function signal(pid: number, name: NodeJS.Signals): true {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
  return true
}

/**
 * After a reboot, or in a fresh container, the process id left in postmaster.pid may be anybody's, and PostgreSQL
 * would refuse to start for ever. The id is replaced rather than the file deleted: the file also names the shared
 * memory by which PostgreSQL notices that children of a killed server are still writing.
 */
function disownStalePid(place: Place): void {
  const lines = pidFile(place)
  const pid = Number(lines?.[0])
  if (!lines || process.platform !== 'linux' || !exists(pid)) return
  const command = readIfPresent(`/proc/${pid}/comm`)?.trim()
  if (command === undefined || (command.startsWith('postgres') && alive(pid))) return
  const draft = join(place.home, `postmaster.pid.${process.pid}`)
  writeFileSync(draft, [pidOfNobody, ...lines.slice(1)].join('\n'), { mode: 0o600 })
  if (place.account) lchownSync(draft, place.account.uid, place.account.gid)
  renameSync(draft, join(place.data, 'postmaster.pid'))
}

/**
 * Under root the server runs as an account that other services may share, so a connection must come from a process
 * of root: the system tells the server who is at the other end of its socket.
 */
function admitOnlyRoot(place: Place, { uid, gid }: Account): void {
  const files = {
    'pg_hba.conf': 'local all all peer map=portico\n',
    'pg_ident.conf': `portico root ${superuser}\n`,
  }
  for (const [name, content] of Object.entries(files)) {
    const draft = join(place.home, `${name}.${process.pid}`)
    writeFileSync(draft, content, { mode: 0o600, flag: 'wx' })
    lchownSync(draft, uid, gid)
    renameSync(draft, join(place.data, name))
  }
}

/** Half clusters of starts that were killed. */
function sweepDrafts(place: Place): void {
  for (const name of readdirSync(place.home)) {
    const pid = /^data\.tmp-(\d+)-/.exec(name)?.[1]
    if (!pid || alive(Number(pid))) continue
    try {
      rmSync(join(place.home, name), { recursive: true, force: true })
    } catch {
      // Its initdb outlived the process that began it and still writes; the next start finds it idle.
    }
  }
}

function openLog(place: Place): number {
  try {
    if (statSync(place.log).size > logBytesMax) renameSync(place.log, `${place.log}.old`)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
  // The folder belongs to the lent account, so a link in it could point root anywhere.
  const { O_APPEND, O_CREAT, O_WRONLY } = constants
  const log = openSync(place.log, O_APPEND | O_CREAT | O_WRONLY | (constants.O_NOFOLLOW ?? 0), 0o600)
  if (place.account) fchownSync(log, place.account.uid, place.account.gid)
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

function passwordFile(place: Place): string {
  const path = join(place.home, 'password')
  try {
    writeFileSync(path, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
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

const quoted = (word: string) =>
  /[\s"]/.test(word) || word === '' ? `"${word.replaceAll('"', '\\"')}"` : word

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
