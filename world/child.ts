import { type ChildProcess, spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { commandLine, isAlive } from './process-table.ts'

export type Child = {
  pid: number
  /** Resolves when the process has ended, for any reason. */
  exited: Promise<void>
  hasExited: () => boolean
  stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<void>
}

type Options = {
  command: string
  args: readonly string[]
  pidFile: string
  /** Called with all output so far until it returns the port that the process listens on. */
  parsePort: (output: string) => number | undefined
  /** Keeps the child's stdin open: the child ends when this process dies. */
  holdStdin: boolean
}

const startTimeoutMs = 15_000
const graceMs = 2_500

const awaitPort = (process: ChildProcess, parsePort: Options['parsePort'], name: string) =>
  new Promise<number>((resolve, reject) => {
    let output = ''
    let stderrText = ''
    const timer = setTimeout(
      () => reject(new Error(`${name} did not start in ${startTimeoutMs} ms.`)),
      startTimeoutMs,
    )
    process.stderr?.on('data', (chunk: Buffer) => {
      if (stderrText.length < 4_000) stderrText += chunk.toString()
    })
    process.stdout?.on('data', (chunk: Buffer) => {
      if (output.length > 100_000) return
      output += chunk.toString()
      const port = parsePort(output)
      if (port === undefined) return
      // Later output is read, so that a full pipe never blocks the child, but not stored.
      output = ' '.repeat(100_001)
      clearTimeout(timer)
      resolve(port)
    })
    process.once('error', (cause) => {
      clearTimeout(timer)
      reject(new Error(`${name} could not be started.`, { cause }))
    })
    process.once('exit', (code, signal) => {
      clearTimeout(timer)
      reject(new Error(`${name} ended while starting (${code ?? signal}). ${stderrText.trim()}`))
    })
  })

/** Starts a process, records it in a pid file, and waits until it prints its port. */
export const startChild = async (options: Options): Promise<{ child: Child; port: number }> => {
  const { command, args, pidFile, parsePort, holdStdin } = options
  const process = spawn(command, args, { stdio: [holdStdin ? 'pipe' : 'ignore', 'pipe', 'pipe'] })
  let hasExited = false
  const exited = new Promise<void>((resolve) => {
    const end = () => {
      hasExited = true
      void rm(pidFile, { force: true }).then(resolve, resolve)
    }
    process.once('exit', end)
    process.once('error', end)
  })
  process.stdin?.on('error', () => {})
  if (process.pid !== undefined) await writeFile(pidFile, String(process.pid))
  const stop: Child['stop'] = async (signal) => {
    if (hasExited) return exited
    process.kill(signal)
    const timer = setTimeout(() => process.kill('SIGKILL'), graceMs)
    await exited
    clearTimeout(timer)
  }
  const child: Child = { pid: process.pid ?? 0, exited, hasExited: () => hasExited, stop }
  try {
    return { child, port: await awaitPort(process, parsePort, command) }
  } catch (error) {
    await stop('SIGKILL')
    throw error
  }
}

const killIfAlive = (pid: number) => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/**
 * Ends processes that a killed supervisor left running. A pid alone proves nothing: the command line must name our
 * files.
 */
export const endOrphan = async (pidFile: string, pid: number, commandLinePart: string): Promise<void> => {
  const isOurs = () => isAlive(pid) && commandLine(pid).includes(commandLinePart)
  if (isOurs()) process.kill(pid, 'SIGTERM')
  const deadline = Date.now() + graceMs
  while (isOurs()) {
    if (Date.now() > deadline) killIfAlive(pid)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await rm(pidFile, { force: true })
}
