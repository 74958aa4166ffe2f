import { contracts } from '#contracts.ts'
import { type Entry, hasTask, isKeyed, operationName, takesWait } from '#kernel/contract/operation.ts'

/** `items` is the field of an answer that holds its list. If the answer is the list, `id` is a field of its items. */
export type ListRow = { cursor: 'after' | 'before' | 'skip' } & ({ items: string } | { id: string })

/**
 * What a client has to know about one operation. A release ships the finished rows in place of this file, which derives
 * them from the contracts.
 */
export type OperationRow = {
  name: string
  /** The section: a client has the operation as `client[group][key]`. */
  group: string
  key: string
  kind: Entry['kind']
  method: Entry['method']
  path: string
  /** Whether the operation is sent without a credential, because its answer is a credential. */
  isSignIn: boolean
  /** Whether a repeat under one idempotency key returns the same answer. */
  isKeyed: boolean
  /** The fields of path and query; all others are in the body, or in the query if there is no body. */
  pathFields: readonly string[]
  queryFields: readonly string[]
  hasBody: boolean
  /** How many seconds a call with `wait` blocks at most, unless its `timeout` says otherwise. */
  waitSeconds?: number
  /** Each call blocks so long, because its answer is that of its task. */
  isAnswered?: true
  isSigned?: true
  /** The fields whose values are signed, too. */
  signs?: readonly string[]
  /** The stream ends by itself, with an event `done` or `error`. */
  hasEnd?: true
  /** How further pages of a list are read; absent if the operation has no further pages. */
  list?: ListRow
}

const camelCase = (text: string): string =>
  text.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

type Properties = Record<string, { type?: unknown }>
const propertiesOf = (schema: unknown): Properties =>
  (schema as { properties?: Properties } | undefined)?.properties ?? {}

/** Returns where a list has its items, which are the first array of the answer, or the answer itself. */
function listOf(entry: Entry): ListRow | undefined {
  const query = propertiesOf(entry.query)
  const cursor = (['after', 'before', 'skip'] as const).find((name) => name in query)
  if (entry.kind !== 'read' || !cursor) return undefined
  const items = Object.entries(propertiesOf(entry.output)).find(([, { type }]) => type === 'array')?.[0]
  if (items !== undefined) return { cursor, items }
  const [id] = Object.keys(propertiesOf((entry.output as { items?: unknown }).items))
  return id === undefined ? undefined : { cursor, id }
}

function rowOf(group: string, key: string, entry: Entry): OperationRow {
  const list = listOf(entry)
  return {
    name: operationName(group, key),
    group: camelCase(group),
    key,
    kind: entry.kind,
    method: entry.method,
    path: entry.path,
    isSignIn: group === 'auth' && entry.access === 'public',
    isKeyed: isKeyed(entry),
    pathFields: Object.keys(propertiesOf(entry.params)),
    queryFields: Object.keys(propertiesOf(entry.query)).concat(takesWait(entry) ? ['wait', 'timeout'] : []),
    hasBody: entry.body !== undefined,
    ...(entry.kind === 'task' && { waitSeconds: entry.waitSeconds }),
    ...(entry.kind === 'task' && entry.isAnswered && { isAnswered: true }),
    ...(entry.kind === 'act' && entry.isSigned && { isSigned: true }),
    ...(entry.kind === 'act' && entry.signs && { signs: entry.signs }),
    ...(hasTask(entry) && { hasEnd: true }),
    ...(list && { list }),
  }
}

export const operations: readonly OperationRow[] = contracts.flatMap(({ group, entries }) =>
  Object.entries(entries).map(([key, entry]: [string, Entry]) => rowOf(group, key, entry)),
)
