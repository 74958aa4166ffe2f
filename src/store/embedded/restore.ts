import { lchownSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { StoreRefusal } from '#store/operator-error.ts'
import { type BackupFile, copyFile, copyName, type Manifest, manifestName } from './backup.ts'
import { majorOf, postmasterPid } from './cluster.ts'
import {
  type Account,
  adoptIdentity,
  type ClusterPaths,
  errorMessage,
  prepareClusterPaths,
  serverAccount,
  syncFolder,
} from './cluster-paths.ts'

export type RestoreOptions = {
  dataDir: string
  source: string
  /** Called once the backup is checked and before anything is changed. */
  beforeReplacement?: () => void
  progress?: (line: string) => void
}

/**
 * Replaces the cluster by a backup and leaves the previous one beside it. The server's next start recovers to
 * the moment at which the backup ended.
 */
export async function restoreCluster({
  dataDir,
  source,
  beforeReplacement = () => {},
  progress = () => {},
}: RestoreOptions): Promise<{ previousData: string | undefined }> {
  const manifest = readManifest(source)
  const paths = prepareClusterPaths(dataDir, serverAccount())
  if (postmasterPid(paths) !== undefined) {
    // A server that a killed gateway left running is stopped by attaching to it and closing, unless another instance
    // uses it.
    const left = await embeddedPostgres({ dataDir, progress })
    await left.close()
  }
  const pid = postmasterPid(paths)
  if (pid !== undefined)
    throw new StoreRefusal(
      `The database server of ${paths.data} runs as process ${pid}. Stop the gateways that use it.`,
    )
  progress('Copying and checking the files of the backup')
  const draft = `${paths.data}.tmp-${process.pid}-restore`
  try {
    restoreFiles(join(source, copyName), draft, manifest, paths.account)
    const previousData = majorOf(paths) === undefined ? undefined : previousDataPath(paths)
    beforeReplacement()
    if (previousData) renameSync(paths.data, previousData)
    renameSync(draft, paths.data)
    syncFolder(paths.home)
    adoptIdentity(paths, manifest.system_identifier)
    return { previousData }
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw error
  }
}

function readManifest(source: string): Manifest {
  try {
    const manifest = JSON.parse(readFileSync(join(source, manifestName), 'utf8')) as Manifest
    if (manifest.format === 1 && Array.isArray(manifest.files)) return manifest
  } catch (cause) {
    throw new StoreRefusal(`${source} is not a backup: ${errorMessage(cause)}`, { cause })
  }
  throw new StoreRefusal(`${source} is a backup in a format that this release does not support.`)
}

function previousDataPath({ data }: ClusterPaths): string {
  const stamp = new Date()
    .toISOString()
    .replace(/[^0-9]/g, '')
    .slice(0, 14)
  for (let n = 0; ; n++) {
    const path = `${data}.before-restore-${stamp}${n === 0 ? '' : `-${n}`}`
    if (!lstatSync(path, { throwIfNoEntry: false })) return path
  }
}

function restoreFiles(
  from: string,
  to: string,
  { folders, files }: Manifest,
  account: Account | undefined,
): void {
  const chown = (path: string) => {
    if (account) lchownSync(path, account.uid, account.gid)
  }
  mkdirSync(to, { mode: 0o700 })
  chown(to)
  for (const folder of folders) {
    assertInside(folder)
    mkdirSync(join(to, folder), { recursive: true, mode: 0o700 })
    chown(join(to, folder))
  }
  for (const file of files) {
    assertInside(file.path)
    const copied = copyFile(from, to, file.path)
    if (!isSame(file, copied))
      throw new StoreRefusal(`${join(from, file.path)} is missing or damaged: this backup cannot be used.`)
    chown(join(to, file.path))
  }
  for (const folder of ['', ...folders]) syncFolder(join(to, folder))
}

const isSame = (file: BackupFile, copied: BackupFile | undefined): boolean =>
  copied?.sha256 === file.sha256 && copied.bytes === file.bytes

/** Validates the manifest's paths, because root writes to them. */
function assertInside(path: string): void {
  if (path.startsWith('/') || path.split(/[\\/]/).includes('..') || dirname(path) === path)
    throw new StoreRefusal(`The backup names a file outside itself: ${path}`)
}
