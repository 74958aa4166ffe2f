import { lstat, mkdir } from 'node:fs/promises'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

/**
 * Folder of compiled code between starts; undefined where another account could write to it, because cached code runs
 * without being checked against its source.
 */
export const prepareCompileCache = async (dataDir: string): Promise<string | undefined> => {
  const path = join(dataDir, 'compile-cache')
  const uid = process.getuid?.()
  await mkdir(path, { recursive: true, mode: 0o700 })
  if (uid === undefined) return path
  const [above, found] = await Promise.all([lstat(dataDir), lstat(path)])
  if (above.uid !== uid || (above.mode & 0o022) !== 0) return undefined
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) return undefined
  return path
}

const option = '--compile-cache'

/** Environment that a process of the world passes to the processes it starts. */
export const compileCacheArgs = (): string[] => {
  const at = process.argv.indexOf(option)
  const folder = process.argv[at + 1]
  return at > 0 && folder !== undefined ? [option, folder] : []
}

/** Half of the start-up time is compiling TypeScript, so this runs before all other imports. */
export const useCompileCache = (): void => {
  const [, folder] = compileCacheArgs()
  if (folder !== undefined) enableCompileCache(folder)
}
