import { lstatSync, mkdirSync, statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

/**
 * Returns the folder of the compile cache; undefined if another account could write to it, because cached code
 * runs without being checked against its source.
 */
export function compileCacheOf(dataDir: string): string | undefined {
  const path = join(dataDir, 'compile-cache')
  const uid = process.getuid?.()
  if (uid === undefined) return path
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const found = lstatSync(path)
  if (statSync(dataDir).uid !== uid || !found.isDirectory() || found.uid !== uid) return undefined
  if ((found.mode & 0o077) !== 0) return undefined
  return path
}

export function useCompileCache(dataDir: string): void {
  const folder = compileCacheOf(dataDir)
  if (folder !== undefined) enableCompileCache(folder)
}
