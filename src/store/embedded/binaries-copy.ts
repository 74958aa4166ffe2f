import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { StoreRefusal } from '#store/operator-error.ts'
import { errorCode } from './cluster-paths.ts'

export type Link = { source: string; target: string }

export function readLinks(native: string): Link[] {
  let content: string
  try {
    content = readFileSync(join(native, 'pg-symlinks.json'), 'utf8')
  } catch {
    return []
  }
  const inside = (path: string) => relative('native', path)
  return (JSON.parse(content) as Link[]).map(({ source, target }) => ({
    source: inside(source),
    target: inside(target),
  }))
}

/**
 * Copies the binaries once to a path where any account can run them, and compares them with the package each
 * time. Every account can write to the parent folder, so links, owners and contents of the copy are all
 * verified. A missing file is restored, because systems clean old files out of /var/tmp; a file that differs is
 * refused.
 */
export function nativeCopy(native: string, links: Link[], progress: (line: string) => void): string {
  const target = copyPath(native)
  const files = filesOf(native)
  if (!lstatSync(target, { throwIfNoEntry: false })) {
    progress(`Copying the PostgreSQL binaries to ${target}`)
    const draft = `${target}.tmp-${process.pid}-${randomBytes(4).toString('hex')}`
    mkdirSync(draft, { mode: 0o700 })
    try {
      completeCopy(native, draft, files, links)
      chmodSync(draft, 0o755)
      renameSync(draft, target)
    } catch (error) {
      rmSync(draft, { recursive: true, force: true })
      if (!['EEXIST', 'ENOTEMPTY', 'EPERM'].includes(errorCode(error) ?? '')) throw error
    }
  }
  checkFolder(target)
  completeCopy(native, target, files, links)
  return target
}

function copyPath(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8')) as { version: string }
  return join('/var/tmp', `portico-pg-${manifest.version}-${process.getuid?.()}`)
}

/** Static libraries and build files are left out, because the server never reads them. */
function filesOf(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(a|pc|json)$/.test(entry.name))
    .map((entry) => relative(native, join(entry.parentPath, entry.name)))
    .filter((path) => !path.startsWith('include'))
}

function completeCopy(native: string, target: string, files: string[], links: Link[]): void {
  const folders = new Set(['.'])
  for (const path of [...files, ...links.map((link) => link.target)])
    ensureFolders(target, dirname(path), folders)
  for (const path of files) {
    const from = join(native, path)
    const to = join(target, path)
    const present = lstatSync(to, { throwIfNoEntry: false })
    if (!present) copyAtomically(from, to)
    else if (!present.isFile() || !isOurs(present) || !readFileSync(from).equals(readFileSync(to)))
      rejectCopy(to)
  }
  for (const link of links) {
    const to = join(target, link.target)
    const content = relative(dirname(link.target), link.source)
    const present = lstatSync(to, { throwIfNoEntry: false })
    if (!present) linkOnce(content, to)
    if (readlinkOf(to) !== content) rejectCopy(to)
  }
}

function ensureFolders(target: string, path: string, known: Set<string>): void {
  if (known.has(path)) return
  ensureFolders(target, dirname(path), known)
  const folder = join(target, path)
  try {
    mkdirSync(folder)
    chmodSync(folder, 0o755)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    checkFolder(folder)
  }
  known.add(path)
}

/** Uses a rename, so that a process that starts at the same time never reads a partial file. */
function copyAtomically(from: string, to: string): void {
  const draft = `${to}.tmp-${process.pid}-${randomBytes(4).toString('hex')}`
  copyFileSync(from, draft)
  chmodSync(draft, lstatSync(from).mode & 0o100 ? 0o755 : 0o644)
  renameSync(draft, to)
}

function linkOnce(content: string, path: string): void {
  try {
    symlinkSync(content, path)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

function readlinkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function checkFolder(path: string): void {
  const present = lstatSync(path)
  if (!present.isDirectory() || !isOurs(present)) rejectCopy(path)
}

const isOurs = ({ uid, mode }: { uid: number; mode: number }) =>
  uid === process.getuid?.() && (mode & 0o022) === 0

function rejectCopy(path: string): never {
  throw new StoreRefusal(
    `${path} is not the copy of the PostgreSQL binaries that the gateway made. Find out what changed it, then delete ` +
      'the folder below /var/tmp and start again.',
  )
}
