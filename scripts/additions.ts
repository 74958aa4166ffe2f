/**
 * Writes the list of operations in docs/additions.md from the contracts, and compares their marks with the interface;
 * with --check it only reports whether the page is current.
 */
import { readFileSync } from 'node:fs'
import { type Entry, operationName } from '#kernel/contract/operation.ts'
import { contracts } from '../src/contracts.ts'
import { root } from './environment.ts'
import { writeGenerated } from './generated-file.ts'

const file = 'docs/additions.md'
const heading = '## Every added operation\n'

const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8')
/** Names of path parameters are of no account. */
const routeOf = ({ method, path }: Pick<Entry, 'method' | 'path'>) =>
  `${method} ${path.replace(/\{\w+\}/g, '{}')}`

const specified = new Set((JSON.parse(read('docs/spec/operations.json')) as Entry[]).map(routeOf))
const operations = contracts.flatMap(({ group, entries }) =>
  Object.entries<Entry>(entries).map(([key, entry]) => ({ name: operationName(group, key), entry })),
)
for (const { name, entry } of operations)
  if (specified.has(routeOf(entry)) === (entry.isAddition === true))
    throw new Error(
      `${name}: isAddition says whether docs/spec/operations.json lacks ${entry.method} ${entry.path}`,
    )

const rows = operations
  .filter(({ entry }) => entry.isAddition)
  .map(({ name, entry }) => `| \`${entry.method} ${entry.path}\` | \`${name}\` | ${entry.summary} |`)
const page = read(file)
const text = [
  `${page.slice(0, page.indexOf(heading))}${heading.trimEnd()}`,
  `${rows.length} operations, as their contracts mark them; \`scripts/additions.ts\` writes this table.`,
  '',
  '| call | name | what it does |',
  '|---|---|---|',
  ...rows,
  '',
].join('\n')

writeGenerated({ file, text, source: 'the contracts' })
