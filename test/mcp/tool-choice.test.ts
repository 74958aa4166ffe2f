/**
 * Whether the texts of tools lead from a request of a person to the right tool. A ranking by words alone, without meanings, is a lower
 * bound for a model that reads the same texts.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { contracts } from '#contracts.ts'
import { searchTextOf } from '#edges/mcp/find-operation.ts'
import { createTextIndex } from '#edges/mcp/text-index.ts'
import { selectionReader } from '#edges/mcp/tool-selection.ts'
import type { ToolView } from '#edges/mcp/tool-view.ts'
import { createToolbox } from '#edges/mcp/tools.ts'
import { createInvocation } from '#invoke/invocation.ts'
import { scopes } from '#kernel/contract/caller.ts'
import { type Contract, type Functions, implement } from '#kernel/contract/operation.ts'
import requests from './spoken-requests.json' with { type: 'json' }

const never = async () => {
  throw new Error('nothing is called')
}
const invocation = createInvocation({ execute: never, authenticate: never })
after(() => invocation.close())

const operations = (contracts as readonly Contract[]).flatMap((contract) => {
  const functions = Object.keys(contract.entries).map((key) => [key, never])
  return implement(contract, Object.fromEntries(functions) as Functions<Contract>)
})
const toolbox = createToolbox(operations, invocation)
const selectionOf = selectionReader(operations.map(({ group }) => group))
const viewsAt = (url: string): readonly ToolView[] =>
  toolbox.listFor({ caller: { scopes: new Set(scopes) }, isLinked: true }, selectionOf(url)).views
const main = viewsAt('/mcp')
const every = viewsAt('/mcp?sections=all').map((view) => main.find(({ name }) => name === view.name) ?? view)

type Text = Pick<ToolView, 'name' | 'description'>
const isFirst = (views: readonly ToolView[], textOf: (view: ToolView) => string) => {
  const index = createTextIndex(views.map((view) => [view.name, textOf(view)]))
  return ({ request, tool }: (typeof requests)[number]) => index.rank(request).slice(0, 3).includes(tool)
}
const nameAndDescription = ({ name, description }: Text) => `${name.replaceAll('_', ' ')} ${description}`

test('a hundred requests name tools that exist, and nine of ten are on the default list', () => {
  assert.equal(new Set(requests.map(({ request }) => request)).size, 100)
  const names = new Set(every.map(({ name }) => name))
  assert.deepEqual(
    requests.filter(({ tool }) => !names.has(tool)),
    [],
  )
  const listed = requests.filter(({ tool }) => main.some(({ name }) => name === tool))
  assert.ok(listed.length >= 90, `${listed.length} of 100`)
})

test('words alone find 95 of a hundred requests among the first three tools', (t) => {
  const onList = isFirst(main, nameAndDescription)
  const bySearch = isFirst(every, searchTextOf)
  const missed = requests.filter((each) =>
    main.some(({ name }) => name === each.tool) ? !onList(each) : !bySearch(each),
  )
  t.diagnostic(`${100 - missed.length} of 100; missed: ${missed.map(({ request }) => request).join(' | ')}`)
  assert.ok(missed.length <= 5, JSON.stringify(missed))
})

test('the search over all operations finds nine of ten by itself', (t) => {
  const found = requests.filter(isFirst(every, searchTextOf))
  t.diagnostic(`${found.length} of 100`)
  assert.ok(found.length >= 90, `${found.length} of 100`)
})
