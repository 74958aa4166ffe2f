/** The packages as they are published. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Builds both packages in a new folder, and returns the paths of their tarballs. */
export async function packPackages(folder: string): Promise<{ gateway: string; sdk: string }> {
  const release = [join(root, 'scripts/release.ts'), folder]
  const { stdout } = await promisify(execFile)(process.execPath, release, { cwd: root })
  const [gateway, sdk] = [...stdout.matchAll(/(\S+\.tgz) /g)].map(([, path]) => path)
  if (!gateway || !sdk) throw new Error(`two packages were expected: ${stdout}`)
  return { gateway, sdk }
}
