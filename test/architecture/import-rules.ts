import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import type { Import, Source } from './source.ts'
import * as tables from './tables.ts'

export type Finding = { rule: string; path: string; line: number; says: string }

export type Manifest = { production: ReadonlySet<string>; development: ReadonlySet<string> }

/** Code that the package has: of the product, or of the local world without the tests that judge it. */
export const isOurs = (path: string): boolean => /^(src|world(?!\/conformance))\//.test(path)
/** A path as imports begin with `#` name it. */
export const roomOf = (path: string): string => path.replace(/^src\//, '')

const isTest = (path: string) => path.endsWith('.test.ts')

/** The longest key that is `path` or a folder above it. */
const longestPrefix = (keys: readonly string[], path: string): string | undefined =>
  keys
    .filter((key) => path === key || path.startsWith(`${key}/`))
    .sort((a, b) => b.length - a.length)
    .at(0)

/** The own part of a file: its slice where the part is sliced, else the whole part. */
export const ownPart = (path: string): string | undefined => {
  const area = longestPrefix(Object.keys(tables.allowedImports), path)
  if (!area || !tables.slicedParts.includes(area)) return area
  return path.split('/').slice(0, 2).join('/')
}

/** The path within src of an import of our own. */
export const targetOf = (path: string, specifier: string): string =>
  specifier.startsWith('#') ? specifier.slice(1) : posix.join(posix.dirname(path), specifier)

type Grant = 'value' | 'type' | undefined

const grant = (area: string, target: string): Grant => {
  const rows = (tables.allowedImports[area] ?? []).map((row) => {
    const words = row.split(' ')
    const typeOnly = words[0] === 'type'
    return { prefix: words[typeOnly ? 1 : 0] ?? '', typeOnly, contract: words[1] === 'contract' }
  })
  const prefix = longestPrefix(
    rows.map((row) => row.prefix),
    target,
  )
  const granted = rows
    .filter((row) => row.prefix === prefix)
    .filter((row) => !row.contract || posix.basename(target) === 'contract.ts')
  if (granted.some((row) => !row.typeOnly)) return 'value'
  return granted.length > 0 ? 'type' : undefined
}

const packageOf = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

const packageGrant = (name: string, path: string): Grant => {
  const key = Object.keys(tables.packages).find((known) =>
    known.endsWith('/') ? name.startsWith(known) : name === known,
  )
  if (isTest(path) && tables.testPackages.includes(name)) return 'value'
  const rows = key ? (tables.packages[key] ?? []) : []
  const parts = rows.filter((row) => !row.startsWith('type '))
  const typeParts = rows.filter((row) => row.startsWith('type ')).map((row) => row.slice(5))
  if (longestPrefix(parts, path)) return 'value'
  return longestPrefix(typeParts, path) ? 'type' : undefined
}

const checkBuiltin = (path: string, specifier: string): string | undefined => {
  if (!specifier.startsWith('node:')) return `write node:${specifier}`
  if (isTest(path) && tables.testBuiltins.includes(specifier)) return undefined
  if (tables.testBuiltins.includes(specifier)) return `${specifier} belongs in a test`
  const inKernel = path.startsWith('kernel/') && !tables.kernelBuiltins.includes(specifier)
  return inKernel ? `the kernel does no input or output, so no ${specifier}` : undefined
}

const checkPackage = (path: string, found: Import, manifest: Manifest): string | undefined => {
  const name = packageOf(found.specifier ?? '')
  const free = tables.unrestrictedFiles.includes(path)
  const granted = free ? 'value' : packageGrant(name, path)
  if (!granted) return `package ${name} is out of reach here`
  if (granted === 'type' && found.kind === 'value') return `package ${name} may be imported as a type only`
  const known = manifest.production.has(name) || manifest.development.has(name)
  if (!known) return `package ${name} is not in package.json`
  const developing = path.startsWith('world/') || isTest(path) || found.kind === 'type'
  return !developing && !manifest.production.has(name)
    ? `package ${name} is a development dependency, and this runs in production`
    : undefined
}

const checkOwn = (path: string, target: string, found: Import): string | undefined => {
  const intoWorld = target.startsWith('world/') && !path.startsWith('world/')
  if (intoWorld && found.kind === 'value' && found.form === 'static')
    return 'production cannot load the world, so reach it by import() where it is asked for'
  if (tables.unrestrictedFiles.includes(path)) return undefined
  const area = longestPrefix(Object.keys(tables.allowedImports), path)
  if (!area) return undefined
  if (ownPart(path) === ownPart(target)) return undefined
  const granted = grant(area, target)
  if (!granted) return `${area} may not reach ${target}`
  return granted === 'type' && found.kind === 'value'
    ? `${area} may import ${target} as a type only`
    : undefined
}

const checkSpelling = (path: string, specifier: string): string | undefined => {
  if (specifier.split('/').includes('..')) return `${specifier}: write #area/x.ts, never ../`
  if (!/\.(ts|json|sql)$/.test(specifier)) return `${specifier}: the file ending is missing`
  const ownFolder = posix.dirname(path)
  if (specifier.startsWith('#') && ownFolder !== '.' && posix.dirname(specifier.slice(1)) === ownFolder)
    return `${specifier}: it is in the same folder, write ./${posix.basename(specifier)}`
  return undefined
}

const checkImport = (path: string, found: Import, manifest: Manifest): string | undefined => {
  const specifier = found.specifier
  if (specifier === undefined)
    return longestPrefix(tables.computedImports, path) ? undefined : 'the imported name is computed'
  if (specifier.startsWith('.') || specifier.startsWith('#')) {
    return checkSpelling(path, specifier) ?? checkOwn(path, targetOf(path, specifier), found)
  }
  return isBuiltin(specifier) ? checkBuiltin(path, specifier) : checkPackage(path, found, manifest)
}

/** Every import of a file in src or world against the two tables. */
export const importFindings = (file: Source, manifest: Manifest): Finding[] => {
  if (!isOurs(file.path)) return []
  const path = roomOf(file.path)
  const findings: Finding[] = []
  if (!tables.unrestrictedFiles.includes(path) && !longestPrefix(Object.keys(tables.allowedImports), path))
    findings.push({ rule: 'reach', path: file.path, line: 1, says: 'this path has no row in the table' })
  for (const found of file.imports) {
    const says = checkImport(path, found, manifest)
    if (says) findings.push({ rule: 'reach', path: file.path, line: found.line, says })
  }
  return findings
}
