import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startWorld, type World, type WorldPart } from '#world/world.ts'

/** A world in a folder of its own, which is removed with it. */
export async function ownWorld(only?: readonly WorldPart[]): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-world-'))
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  try {
    const world = await startWorld({ dataDir: folder, port: 0, ...(only && { only }) })
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
