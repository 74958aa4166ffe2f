import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix, sep } from 'node:path'
import type { Manifest } from './import-rules.ts'
import { type Source, source } from './source.ts'

const root = `${import.meta.dirname}/../..`

export const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8')
export const has = (path: string) => existsSync(`${root}/${path}`)

/** Every TypeScript file of ours, with paths from the root. */
export const sources = (): Source[] =>
  ['src', 'world', 'test', 'scripts', 'bench']
    .filter(has)
    .flatMap((folder) =>
      readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => posix.join(folder, name.split(sep).join('/'))),
    )
    .sort()
    .map((path) => source(path, read(path)))

/** The SQL, the contracts and the documents of ours. A decision that was taken is not edited, so its words stay. */
export const texts = (): { path: string; text: string }[] =>
  [
    ...['src', 'world', 'docs'].flatMap((folder) =>
      readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' }).map((name) =>
        posix.join(folder, name.split(sep).join('/')),
      ),
    ),
    ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ]
    .filter((path) => /\.(sql|sol|md)$/.test(path) && !path.startsWith('docs/decisions/'))
    .sort()
    .map((path) => ({ path, text: read(path) }))

type PackageJson = Record<
  'dependencies' | 'optionalDependencies' | 'devDependencies',
  Record<string, string> | undefined
>

export const packageJson = (): PackageJson => JSON.parse(read('package.json'))

export const manifest = (): Manifest => {
  const parts = packageJson()
  return {
    production: new Set(Object.keys({ ...parts.dependencies, ...parts.optionalDependencies })),
    development: new Set(Object.keys(parts.devDependencies ?? {})),
  }
}
