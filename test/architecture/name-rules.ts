import { posix } from 'node:path'
import * as names from './forbidden-names.ts'
import type { Finding } from './import-rules.ts'
import type { Source } from './source.ts'

type Use = { name: string; says: string; line: number }

/** The lists themselves, and the sources that break them on purpose. */
const ownFiles = ['test/architecture/forbidden-names.ts', 'test/architecture/rule-fixtures.ts']

const isWithin = (path: string, folder: string) =>
  folder === '.' || path === folder || path.startsWith(`${folder}/`)

/** The rows of a table that apply to `path`; those of its own folder win. */
const rowsFor = (table: Record<string, Record<string, string>>, path: string): Record<string, string> =>
  Object.fromEntries(
    Object.keys(table)
      .filter((folder) => isWithin(path, folder))
      .flatMap((folder) => Object.entries(table[folder] ?? {})),
  )

const own = (table: Record<string, string>, name: string): string | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

const partsOf = (identifier: string): string[] =>
  identifier.split(/_|(?<=[a-z0-9])(?=[A-Z])/).map((part) => part.toLowerCase())

/** The reason against an identifier; undefined for one that may be used. */
const wrongIdentifier = (identifier: string, rows: Record<string, string>): Omit<Use, 'line'> | undefined => {
  const name = identifier.replace(/^[#@]/, '')
  const use = own(rows, name)
  if (use !== undefined) return { name, says: `${name} is not a name here; use ${use}` }
  for (const part of partsOf(name)) {
    const instead = own(names.forbiddenParts, part)
    if (instead !== undefined)
      return { name: part, says: `${part} in ${name} is not a name here; use ${instead}` }
  }
  for (const [suffix, instead] of Object.entries(names.forbiddenSuffixes))
    if (name.endsWith(suffix) && name !== suffix && !/at(Most|Least)$/i.test(name))
      return { name, says: `${name} ends in ${suffix}; use ${instead}` }
  return undefined
}

const wordPattern = new RegExp(`\\b(${Object.keys(names.forbiddenWords).join('|')})\\b`, 'gi')

const wrongWords = (text: string, line: number): Use[] =>
  [...text.matchAll(wordPattern)].map((hit) => {
    const name = hit[0].toLowerCase()
    return {
      name,
      says: `"${hit[0]}" says too little in a text; write ${names.forbiddenWords[name]}`,
      line: line + text.slice(0, hit.index).split('\n').length - 1,
    }
  })

const wrongFile = (path: string): Use[] => {
  const stem = posix.basename(path).replace(/(\.(test|bench|d))?\.\w+$/, '')
  const use = own(rowsFor(names.forbiddenFiles, path), stem)
  return use === undefined
    ? []
    : [{ name: stem, says: `a file is not called ${stem} here; use ${use}`, line: 1 }]
}

/** Every use of a forbidden name in a TypeScript file, the excepted ones included. */
const usesIn = ({ path, written }: Source): Use[] => {
  const rows = rowsFor(names.forbiddenIdentifiers, path)
  const hasTags = names.forbiddenTagFolders.some((folder) => isWithin(path, folder))
  const uses = wrongFile(path)
  for (const { kind, text, line } of written.tokens) {
    if (kind === 'word') {
      const wrong = wrongIdentifier(text, rows)
      if (wrong) uses.push({ ...wrong, line })
    }
    if (kind !== 'string' && kind !== 'template') continue
    uses.push(...wrongWords(text, line))
    const tag = text.slice(1, -1)
    const use = hasTags && kind === 'string' ? own(names.forbiddenTags, tag) : undefined
    if (use !== undefined)
      uses.push({ name: tag, says: `'${tag}' is not an outcome here; use '${use}'`, line })
  }
  return [...uses, ...written.comments.flatMap(({ text, line }) => wrongWords(text, line))]
}

/** The same for SQL and documents: words of texts, and names of tables and columns. */
const usesInText = (path: string, text: string): Use[] => {
  const rows = rowsFor(names.forbiddenIdentifiers, path)
  const identifierPattern = path.endsWith('.sql') ? /[a-z]\w*/gi : /[a-z]\w*_\w+/gi
  const found = text.split('\n').flatMap((each, at) => {
    const identifiers = each.replace(/--.*/, '').match(identifierPattern) ?? []
    const wrong = identifiers.map((name) => wrongIdentifier(name, rows)).filter((use) => use !== undefined)
    return [...wrong.map((use) => ({ ...use, line: at + 1 })), ...wrongWords(each, at + 1)]
  })
  return [...wrongFile(path), ...found]
}

const isExcepted = (path: string, { name }: Use) =>
  names.nameExceptions.some((row) => row.name === name && isWithin(path, row.in))

const asFindings = (path: string, uses: readonly Use[]): Finding[] =>
  ownFiles.includes(path)
    ? []
    : uses
        .filter((use) => !isExcepted(path, use))
        .map(({ line, says }) => ({ rule: 'forbiddenNames', path, line, says }))

/** Names of the field instead of names of our own: identifiers, tags, texts and files. */
export const forbiddenNames = (file: Source): Finding[] => asFindings(file.path, usesIn(file))

export const forbiddenNamesInText = (path: string, text: string): Finding[] =>
  asFindings(path, usesInText(path, text))

/** Exceptions that no file needs. */
export const unusedNameExceptions = (
  files: readonly Source[],
  texts: readonly { path: string; text: string }[],
): string[] => {
  const used = new Set<string>()
  const note = (path: string, uses: readonly Use[]) => {
    for (const { name } of uses)
      for (const row of names.nameExceptions)
        if (row.name === name && isWithin(path, row.in)) used.add(`${row.name} in ${row.in}`)
  }
  for (const file of files) note(file.path, usesIn(file))
  for (const { path, text } of texts) note(path, usesInText(path, text))
  return names.nameExceptions.map((row) => `${row.name} in ${row.in}`).filter((row) => !used.has(row))
}
