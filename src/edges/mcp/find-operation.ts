import { invalid } from '#kernel/contract/fault.ts'
import { createTextIndex, type TextIndex } from './text-index.ts'
import { answerResult, type ToolResult } from './tool-result.ts'
import type { Selection } from './tool-selection.ts'
import type { OperationTool, ToolView } from './tool-view.ts'

/** Two tools stand for all operations that are not main tools: one finds an operation, the other calls it. */

export const findToolName = 'find_operation'
export const callToolName = 'call_operation'

const foundDefault = 3
const foundMax = 10
const queryLengthMax = 500
/** An answer costs one read, so its texts and schemas have a bound; the first operation is always whole. */
const answerBytesMax = 16_384

const findView: ToolView = {
  name: findToolName,
  title: 'Find an operation by words',
  description:
    'Take this when no other tool fits: it searches every operation, such as prediction markets, spot at the venue, ' +
    'scheduled chats, strategies, webhooks, credits, recipients and linked agents. Answers names, texts and input ' +
    'schemas for `call_operation`; moves nothing.',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', description: 'What you want to do, in words, or the name of an operation' },
      limit: { type: 'integer', default: foundDefault },
    },
    required: ['query'],
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
}

const callView = ({ readsOnly }: Selection): ToolView => ({
  name: callToolName,
  title: 'Call an operation by its name',
  description:
    'Calls an operation that `find_operation` has found, under the same scopes, limits, approvals and idempotency keys as ' +
    'a tool of its own. Take the tool itself where one is listed.',
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'Name of the operation' },
      arguments: { type: 'object', description: 'Its input, with its `idempotency_key`' },
    },
    required: ['name'],
  },
  annotations: {
    readOnlyHint: readsOnly,
    destructiveHint: !readsOnly,
    idempotentHint: readsOnly,
    openWorldHint: true,
  },
})

export const catalogueViews = (selection: Selection): ToolView[] => [findView, callView(selection)]

export const searchTextOf = ({
  name,
  title,
  description,
}: Pick<ToolView, 'name' | 'title' | 'description'>) => `${name.replaceAll('_', ' ')} ${title} ${description}`

export type FindOperation = (
  given: Record<string, unknown>,
  isOffered: (tool: OperationTool) => boolean,
) => ToolResult

export function createFindOperation(byName: ReadonlyMap<string, OperationTool>): FindOperation {
  let index: TextIndex | undefined
  return ({ query, limit = foundDefault }, isOffered) => {
    if (typeof query !== 'string' || query === '' || query.length > queryLengthMax)
      throw invalid('query', 'string_type', `Input should be a text of 1 to ${queryLengthMax} characters`)
    if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > foundMax)
      throw invalid('limit', 'value_error', `Input should be a whole number from 1 to ${foundMax}`)
    index ??= createTextIndex(
      [...byName.values()].map(({ view, main }) => [view.name, searchTextOf(main ?? view)]),
    )
    const named = byName.get(query)
    const names = named ? [query] : index.rank(query)
    const found = names
      .map((name) => byName.get(name)!)
      .filter(isOffered)
      .slice(0, limit)
    const all = found.map(foundView)
    const operations = withinBytes(all, answerBytesMax)
    const more = all.slice(operations.length).map(({ name }) => name)
    return answerResult({ operations, ...(more.length > 0 && { more }) }, {}, { replayed: false })
  }
}

const foundView = ({ view: { name, title, description, inputSchema, annotations } }: OperationTool) => ({
  name,
  title,
  description,
  reads_only: annotations.readOnlyHint,
  input_schema: inputSchema,
})

/** Returns the first of the items that have so many bytes together, and at least one. */
export function withinBytes<Item>(items: readonly Item[], bytesMax: number): Item[] {
  let bytes = 0
  const end = items.findIndex((item, index) => {
    bytes += Buffer.byteLength(JSON.stringify(item))
    return index > 0 && bytes > bytesMax
  })
  return end < 0 ? [...items] : items.slice(0, end)
}
