import { closeSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Expected: the folder belongs to another process. The start says so and ends. */
export class InUse extends Error {}

/** Where the system tells it, the state of a process and what follows it in its `stat`. */
function statOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** The start time of a process: a pid alone may have been given to another one since. */
const startedAt = (pid: number) => statOf(pid)[19]

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A killed process keeps its pid until its parent takes note of its end.
    return !['Z', 'X'].includes(statOf(pid)[0] ?? '')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const lockContent = () => `${process.pid} ${startedAt(process.pid) ?? ''}`

/** One gateway per data folder. A mark that a killed process left behind is taken over. */
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
  throw new InUse(`The data folder ${dataDir} is being taken by another process.`)
}

function readLock(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
