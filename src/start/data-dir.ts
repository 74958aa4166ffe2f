import { chmodSync, mkdirSync, statSync } from 'node:fs'

export class DataDirRefusal extends Error {}

/**
 * Creates the data folder, or removes excess permissions of others from an existing one. Under root, others may
 * traverse the folder but not list it, because the embedded database runs under another account in a subfolder.
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
