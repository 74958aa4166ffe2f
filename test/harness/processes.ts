/** The processes of one gateway, as the system lists them. Reads /proc. */
import { readdirSync, readFileSync } from 'node:fs'
import { eventually } from './gateway.ts'

const numbers = (): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)

const textOf = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** A zombie has no command line. */
const isRunning = (pid: number): boolean => textOf(pid, 'cmdline') !== ''

/** Processes whose command line or environment names the data folder, zombies apart. */
export const processesOf = (dataDir: string): number[] =>
  numbers().filter(
    (pid) =>
      pid !== process.pid &&
      isRunning(pid) &&
      `${textOf(pid, 'environ')}${textOf(pid, 'cmdline')}`.includes(dataDir),
  )

/** The fourth field of `stat`, after a name in brackets that may contain anything. */
const parentOf = (pid: number): number => {
  const stat = textOf(pid, 'stat')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

export const childrenOf = (parent: number): number[] => numbers().filter((pid) => parentOf(pid) === parent)

/** Names of programs, without their folders and arguments. */
export const programOf = (pid: number): string =>
  (textOf(pid, 'cmdline').split('\0')[0] ?? '').split('/').at(-1) ?? ''

/** The list is made first, so that no process reacts to the death of another one. */
export async function killAtOnce(pids: readonly number[]): Promise<void> {
  for (const pid of new Set(pids))
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      // A backend of the database may have ended by itself.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  const haveEnded = async () => (pids.some(isRunning) ? undefined : true)
  await eventually(haveEnded, 'every killed process has ended')
}
