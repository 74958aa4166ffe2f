/** The package as it is published. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the package in a new folder, and returns the path of its tarball. */
export async function packPackage(folder: string): Promise<string> {
  const release = [join(root, 'scripts/release.ts'), folder]
  const { stdout } = await promisify(execFile)(process.execPath, release, { cwd: root })
  const tarball = /(\S+\.tgz) /.exec(stdout)?.[1]
  if (!tarball) throw new Error(`nothing was packed: ${stdout}`)
  return tarball
}
