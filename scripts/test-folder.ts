/** The folder for temporary files of one run of the tests: files that a test leaves are removed with it. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type RunFolder = { open(): { path: string; remove(): void }; remove(): void }

const ofRun = /^portico-run-(\d+)-/

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** A process that is stopping may still write. */
const clear = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  } catch {
    // Owned by another account, or still written to: the folder of the run is removed once more at its end.
  }
}

export const openRunFolder = (): RunFolder => {
  for (const name of readdirSync(tmpdir()))
    if (!isAlive(Number(ofRun.exec(name)?.[1] ?? process.pid))) clear(join(tmpdir(), name))
  const path = mkdtempSync(join(tmpdir(), `portico-run-${process.pid}-`))
  // The embedded database of root runs under an account that needs access.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700
  chmodSync(path, mode)
  let opened = 0
  return {
    open() {
      const own = join(path, String(opened++))
      mkdirSync(own, { mode })
      return { path: own, remove: () => clear(own) }
    },
    remove: () => clear(path),
  }
}
