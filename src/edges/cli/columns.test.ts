import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contracts } from '#contracts.ts'
import { columnsOf } from '#kernel/contract/columns.ts'
import { type Entry, operationName } from '#kernel/contract/operation.ts'
import { withoutNull } from './schema-view.ts'

type Schema = Readonly<Record<string, unknown>>

/** Every list of objects in the answers and results of the product, by the operation and the path. */
function listsOf(): { path: string; item: Schema }[] {
  const found: { path: string; item: Schema }[] = []
  const walk = (path: string, declared: unknown): void => {
    const schema = withoutNull((declared ?? {}) as Schema)
    if (schema.type === 'array') {
      const item = withoutNull(schema.items as Schema)
      if (item.properties) found.push({ path, item })
      walk(`${path}[]`, item)
      return
    }
    for (const [name, field] of Object.entries((schema.properties ?? {}) as Record<string, Schema>))
      walk(`${path}.${name}`, field)
  }
  for (const { group, entries } of contracts)
    for (const [key, entry] of Object.entries(entries) as [string, Entry][]) {
      if (entry.kind !== 'stream') walk(operationName(group, key), entry.output)
      if (entry.kind === 'task') walk(`${operationName(group, key)} result`, entry.result)
    }
  return found
}

const namesOf = ({ properties }: Schema): Record<string, Schema> =>
  (properties ?? {}) as Record<string, Schema>

test('each list whose items have more than seven fields declares four to seven columns', () => {
  const lists = listsOf()
  assert.ok(lists.length > 50)
  const wrong = lists.filter(({ path, item }) => {
    const columns = columnsOf(item)
    // The fills of a task are not a table: each is a phrase, such as "buy 0.01 at 3,000".
    if (path.endsWith('.fills') && path !== 'perp_fills.fills' && path !== 'spot_venue_fills.fills')
      return false
    if (columns === undefined) return Object.keys(namesOf(item)).length > 7
    return (
      columns.length > 7 ||
      (columns.length < 4 && columns.length > 0 && Object.keys(namesOf(item)).length > 7)
    )
  })
  assert.deepEqual(
    wrong.map(({ path, item }) => `${path}: ${columnsOf(item)?.length ?? 'no'} columns`),
    [],
  )
})

test('each column is a field of its object', () => {
  const hasField = (schema: Schema, path: string): boolean => {
    const [name = '', ...rest] = path.split('.')
    const field = namesOf(schema)[name]
    return field !== undefined && (rest.length === 0 || hasField(withoutNull(field), rest.join('.')))
  }
  for (const { path, item } of listsOf())
    for (const column of columnsOf(item) ?? [])
      for (const name of column.split('|')) assert.ok(hasField(item, name), `${path}: ${name}`)
})
