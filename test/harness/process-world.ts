/** One world for all tests of a process that leave it as they found it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startWorld, type World, type WorldUrls } from '#world/world.ts'
import { oncePerProcess } from './once-per-process.ts'

const open = async (): Promise<World> => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-world-'))
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  try {
    const world = await startWorld({ dataDir: folder, port: 0 })
    return {
      ...world,
      async [Symbol.asyncDispose]() {
        await world[Symbol.asyncDispose]()
        remove()
      },
    }
  } catch (error) {
    remove()
    throw error
  }
}

const world = oncePerProcess(open)

/** The world of this process, without the failures that another test has set. */
export const processWorld = async (): Promise<WorldUrls> => {
  const { urls } = await world()
  await fetch(`${urls.control}/faults`, { method: 'DELETE' })
  return urls
}
