/**
 * Compares every migration with src/store/migrations.sha256, and adds those that it lacks. A line is never changed or
 * removed: databases have these files applied, and refuse any other content. With --check it changes nothing and fails
 * where a file is missing, differs or is not listed.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { type Migration, migrationsFolder, readMigrations } from '../src/store/migrate.ts'

type Named = Pick<Migration, 'name' | 'checksum'>

const file = 'src/store/migrations.sha256'
const path = `${migrationsFolder}.sha256`
const command = 'node scripts/with-node.cjs scripts/migration-checksums.ts'

export const parseList = (text: string): Named[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({ checksum: line.slice(0, 64), name: line.slice(66) }))

/** The lines are sorted by name, so that lines which several branches add do not meet. */
const byName = (one: Named, other: Named) => (one.name < other.name ? -1 : 1)
const lineOf = ({ checksum, name }: Named) => `${checksum}  ${name}\n`

/** What was done to listed files, in sentences, and the files that are not listed. */
export function compareMigrations(listed: readonly Named[], found: readonly Named[]) {
  const checksums = new Map(found.map(({ name, checksum }) => [name, checksum]))
  const problems = listed.flatMap(({ name, checksum }) => {
    const now = checksums.get(name)
    if (now === checksum) return []
    return [
      `${name} was ${now ? 'edited' : 'removed'}. An applied migration is never edited or removed: restore it, and put the change into a new file.`,
    ]
  })
  const names = new Set(listed.map(({ name }) => name))
  return { problems, added: found.filter(({ name }) => !names.has(name)) }
}

if (import.meta.main) {
  const listed = parseList(readFileSync(path, 'utf8'))
  const { problems, added } = compareMigrations(listed, readMigrations())
  for (const problem of problems) console.error(problem)
  if (process.argv.includes('--check')) {
    if (added.length > 0)
      console.error(`${file} lacks ${added.map(({ name }) => name).join(', ')}. To add them, run: ${command}`)
    if (problems.length + added.length > 0) process.exitCode = 1
  } else if (problems.length > 0) process.exitCode = 1
  else {
    writeFileSync(path, [...listed, ...added].toSorted(byName).map(lineOf).join(''))
    console.log(`${added.length} migrations added to ${file}`)
  }
}
