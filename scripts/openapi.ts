/**
 * Writes docs/openapi.json from the contracts, without database or world; with --check it only reports whether it is
 * current.
 */
import { globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type Documented, openapiOf } from '../src/edges/http/openapi.ts'
import { type Contract, operationName } from '../src/kernel/contract/operation.ts'
import { root } from './environment.ts'
import { writeGenerated } from './generated-file.ts'

const isContract = (value: unknown): value is Contract =>
  typeof value === 'object' && value !== null && 'group' in value && 'entries' in value

/** In the order of the interface document; sections of our own come last, by name. */
async function contracts(): Promise<Contract[]> {
  const rows = JSON.parse(readFileSync(`${root}/docs/spec/operations.json`, 'utf8')) as { section: string }[]
  const order = [...new Set(rows.map(({ section }) => section))]
  const rank = ({ group }: Contract) => (order.includes(group) ? order.indexOf(group) : order.length)
  const files = globSync('src/features/*/contract.ts', { cwd: root }).sort()
  const modules = await Promise.all(
    files.map((file) => import(pathToFileURL(`${root}/${file}`).href) as Promise<Record<string, unknown>>),
  )
  return modules
    .flatMap((module) => Object.values(module).filter(isContract))
    .sort((a, b) => rank(a) - rank(b) || (a.group < b.group ? -1 : 1))
}

const documented = ({ entries, ...section }: Contract): Documented[] =>
  Object.entries(entries).map(([key, entry]) => ({
    name: operationName(section.group, key),
    ...section,
    entry,
  }))

const text = `${JSON.stringify(openapiOf((await contracts()).flatMap(documented)), null, 2)}\n`
writeGenerated({ file: 'docs/openapi.json', text, source: 'the contracts' })
