import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { readIfPresent, replaceFile } from './atomic-file.ts'
import type { Override } from './prices/book.ts'

/** State of the world apart from its chains. */
export type WorldState = {
  world_id: string
  clock_offset_seconds: number
  prices: Record<string, Override>
  /** Last used ports, tried first: an URL in a wallet or a shell stays valid over a restart. */
  ports: Record<string, number>
}

export type StateFile = { value: WorldState; save: () => Promise<void> }

export const openStateFile = async (dataDir: string): Promise<StateFile> => {
  const path = join(dataDir, 'world.json')
  const text = await readIfPresent(path)
  const fresh: WorldState = { world_id: randomUUID(), clock_offset_seconds: 0, prices: {}, ports: {} }
  const value = text === undefined ? fresh : { ...fresh, ...(JSON.parse(text) as Partial<WorldState>) }
  let saving = Promise.resolve()
  const save = () => {
    saving = saving.catch(() => {}).then(() => replaceFile(path, JSON.stringify(value, null, 2)))
    return saving
  }
  await save()
  return { value, save }
}
