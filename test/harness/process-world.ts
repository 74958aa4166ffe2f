/** One world for all tests of a process that restore its state. */
import type { WorldUrls } from '#world/world.ts'
import { oncePerProcess } from './once-per-process.ts'
import { ownWorld } from './own-world.ts'

const world = oncePerProcess(() => ownWorld())

/** The world of this process, without the failures that another test has set. */
export const processWorld = async (): Promise<WorldUrls> => {
  const { urls } = await world()
  await fetch(`${urls.control}/faults`, { method: 'DELETE' })
  return urls
}
