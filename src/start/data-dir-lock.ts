import { closeSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export class InUse extends Error {}

/** Returns the fields of /proc/<pid>/stat from the process state on; none if the system has no /proc. */
function statOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** The start time identifies a process, because the system can reuse a pid. */
const startedAt = (pid: number) => statOf(pid)[19]

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A killed process keeps its pid until its parent has reaped it.
    return !['Z', 'X'].includes(statOf(pid)[0] ?? '')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const lockContent = () => `${process.pid} ${startedAt(process.pid) ?? ''}`

/** Allows one gateway per data folder. The lock of a killed process is taken over. */
export function lockDataDir(dataDir: string): Disposable {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const file = join(dataDir, 'gateway.pid')
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const handle = openSync(file, 'wx')
      writeSync(handle, lockContent())
      closeSync(handle)
      return { [Symbol.dispose]: () => readFileSync(file, 'utf8') === lockContent() && unlinkSync(file) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const [pid = '', started = ''] = readLock(file).split(' ')
    const same = started === '' || startedAt(Number(pid)) === started
    if (pid !== '' && Number(pid) !== process.pid && isAlive(Number(pid)) && same)
      throw new InUse(
        `The data folder ${dataDir} is in use by process ${pid}. Stop it, or set DATA_DIR to another folder.`,
      )
    unlinkSync(file)
  }
  throw new InUse(`The data folder ${dataDir} is being locked by another process. Try again.`)
}

function readLock(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
