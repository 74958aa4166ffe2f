import { chmodSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Expected: the data folder is not ours to use. */
export class DataDirRefusal extends Error {}

/**
 * Makes the data folder, or takes what others may do in it away. Root lets others pass and not list: the embedded
 * database runs under another account, in a folder of its own further down.
 */
export function openDataDir(path: string): void {
  const uid = process.getuid?.()
  const mode = uid === 0 ? 0o711 : 0o700
  try {
    mkdirSync(path, { recursive: true, mode })
    if (uid === undefined) return
    const found = statSync(path)
    if (found.uid === uid) {
      if ((found.mode & 0o777 & ~mode) !== 0) chmodSync(path, found.mode & mode)
      return
    }
    if (uid === 0 && (found.mode & 0o002) === 0) return
  } catch (cause) {
    throw new DataDirRefusal(`The data folder ${path} cannot be used: ${(cause as Error).message}`, { cause })
  }
  throw new DataDirRefusal(
    `The data folder ${path} belongs to another account. Start as its owner, or set DATA_DIR to another folder.`,
  )
}

/**
 * Where compiled code is kept between starts; undefined where another account could put code of its own there,
 * because what lies in the cache is run without being checked against its source.
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
