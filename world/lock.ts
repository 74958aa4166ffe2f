import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLine, isAlive } from './process-table.ts'

const defaultTimeoutMs = 10_000
const pollMs = 50

/** A pid is reused sooner or later, so the holder's command line must also name this directory. */
const isHeldBy = (pid: number, dataDir: string) =>
  pid > 0 && isAlive(pid) && `${commandLine(pid)} `.includes(` ${dataDir} `)

/** Makes this process the only world of the directory. Waits for one that is stopping. */
export const lockDirectory = async (
  dataDir: string,
  timeoutMs = defaultTimeoutMs,
): Promise<() => Promise<void>> => {
  const path = join(dataDir, 'world.lock')
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      const file = await open(path, 'wx')
      await file.writeFile(String(process.pid))
      await file.close()
      return async () => {
        if ((await readFile(path, 'utf8').catch(() => '')) === String(process.pid))
          await rm(path, { force: true })
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const text = await readFile(path, 'utf8').catch(() => '')
    const holder = Number(text)
    // An empty file belongs to a holder between creating and writing it; it gets one interval to finish.
    if (text === '') await new Promise((resolve) => setTimeout(resolve, pollMs))
    const again = await readFile(path, 'utf8').catch(() => undefined)
    if (again === text && !isHeldBy(holder, dataDir)) await rm(path, { force: true })
    else if (Date.now() > deadline) {
      throw new Error(
        `Another world (process ${text}) uses ${dataDir}; stop it first or choose another directory.`,
      )
    } else await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
