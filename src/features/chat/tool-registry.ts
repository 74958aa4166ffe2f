import type { Scope } from '#kernel/contract/caller.ts'
import { isScope, type Operation } from '#kernel/contract/operation.ts'
import type { ToolDescription } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/**
 * The operations of these groups give or take access, or are the chat itself, so no tool offers them. A turn reads markets by
 * tools of its own.
 */
const closedGroups = ['auth', 'webhooks', 'chat', 'markets', 'strategies', 'subscriptions']
/**
 * A turn only reads in these groups, because people decide in them, and a call could loosen some of their limits.
 * Schedules are among them, because a text that a turn has read could otherwise plan runs.
 */
const readOnlyGroups = ['agents', 'approvals', 'recipients', 'policy', 'schedules']
/** A user acknowledges this text without a chat, which could act on words that a stranger wrote. */
const ownActs = ['predmkt_acknowledge_disclaimer']
const openAccess = ['public', 'read', 'manage', 'trade', 'earn', 'withdraw']

/**
 * A `read` is called at once. A `tighten` can only restrict, so it is called if the user's own words name it. A
 * `change` is started only if the message orders it within the limit for chats; otherwise it becomes a recommendation
 * that only its user can accept.
 */
export type ToolEffect = ToolDescription['effect']
export type Tool = { operation: Operation; hasDryRun: boolean; effectOf(input: JsonObject): ToolEffect }

/**
 * These calls only tighten when a turn makes them: a turn confirms nothing, so it raises no limit and switches nothing
 * on again.
 */
const tightens = (name: string): boolean => ['policy_kill', 'policy_tighten', 'tasks_cancel'].includes(name)

const isOpen = ({ name, group, entry: { kind, access } }: Operation): boolean =>
  kind !== 'stream' &&
  !closedGroups.includes(group) &&
  !ownActs.includes(name) &&
  openAccess.includes(access) &&
  (kind === 'read' || !readOnlyGroups.includes(group) || tightens(name))

const hasDryRun = ({ entry }: Operation): boolean =>
  'dryrun' in ((entry.body as { properties?: object } | undefined)?.properties ?? {})

function toTool(operation: Operation): Tool {
  const { kind } = operation.entry
  const quotes = hasDryRun(operation)
  return {
    operation,
    hasDryRun: quotes,
    effectOf({ dryrun }) {
      if (kind === 'read' || (quotes && dryrun === true)) return 'read'
      return tightens(operation.name) ? 'tighten' : 'change'
    },
  }
}

export const toolsOf = (operations: readonly Operation[]): ReadonlyMap<string, Tool> =>
  new Map(operations.filter(isOpen).map((operation) => [operation.name, toTool(operation)]))

export const isWithin = ({ entry: { access } }: Operation, scopes: ReadonlySet<Scope>): boolean =>
  access === 'public' || (isScope(access) && scopes.has(access))

export function descriptionOf(
  { operation, hasDryRun, effectOf }: Tool,
  inputSchema: object,
): ToolDescription {
  const { summary, description } = operation.entry
  const sentences = [summary, description].filter((text) => text !== undefined)
  return {
    name: operation.name,
    description: sentences.map((text) => (text.endsWith('.') ? text : `${text}.`)).join(' '),
    inputSchema: inputSchema as JsonObject,
    effect: effectOf({}),
    hasDryRun,
  }
}
