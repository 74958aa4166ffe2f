import type { InnerCalls } from '#invoke/inner-calls.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { OwnedTurn, ToolCall } from '#kernel/wire/chat-answerer.ts'
import type { Json } from '#kernel/wire/json.ts'
import type { MadeCall, Mandate } from './mandate.ts'
import type { Tool } from './tool-registry.ts'

/**
 * This module decides what a turn starts by itself: a trade or a deposit that the words of its message order in full,
 * within what is left of the user's limit for chats. The policy counts the amount in the accepting transaction, so no
 * number of turns exceeds the limit. A run of a schedule also starts the exits that its words order in full. Everything
 * else is recommended.
 */

/** Transfers, withdrawals, approvals and keys are left out, and so are exits, which do not count against a limit. */
export const startable: ReadonlySet<string> = new Set([
  'swap_execute',
  'perp_open',
  'spot_venue_buy',
  'earn_deposit',
])

/** In a run of a schedule these operations may reduce positions of the schedule, whatever is left of the limits. */
export const reducing: ReadonlySet<string> = new Set(['perp_close', 'spot_venue_sell'])

export type BudgetDeps = {
  hasBudget: (userId: string) => Promise<boolean>
  isStarted: (userId: string, key: string) => Promise<boolean>
}
type StarterDeps = BudgetDeps & {
  calls: () => InnerCalls
  currentCaller: () => Promise<Caller>
  mandate: () => Promise<Mandate>
  keyOf: (callId: string) => string
}
type StarterParts = {
  turn: OwnedTurn
  /** Resolves once the announcement of the call is stored; throws if another instance runs the turn. */
  flush: () => Promise<void>
  /** Calls that an earlier run of the turn announced but did not recommend. */
  earlier: readonly ToolCall[]
  made: readonly MadeCall[]
  signal: AbortSignal
}
/** Why a call that the user has ordered is recommended and not started. */
export type NotStarted = { reason: string; detail: string }
export type Starter = (call: ToolCall, tool: Tool) => Promise<{ output: Json } | NotStarted | undefined>

const startMs = 60_000

/** Creates the starter of a turn; it returns undefined for a call that the turn may not start by itself. */
export function createStarter(deps: StarterDeps, parts: StarterParts): Starter {
  const { turn, flush, earlier, made, signal } = parts
  const begun = new Map(earlier.map((call) => [call.id, call]))
  const isOrdered = async (call: ToolCall): Promise<boolean> => {
    const { orders } = await deps.mandate()
    const others = [...begun.values()].filter(({ id }) => id !== call.id)
    if (!orders(call, { made, begun: others })) return false
    // Nothing is awaited between the check of the order and this line, so that concurrent calls use one order each.
    begun.set(call.id, call)
    return true
  }
  const start = async (call: ToolCall, { operation }: Tool, caller: Caller): Promise<Json> => {
    signal.throwIfAborted()
    const answer = await deps.calls().call({
      operation,
      input: call.input,
      caller,
      key: deps.keyOf(call.id),
      // The idempotency key contains the id of the turn, so nothing was executed under this key before the turn.
      keyMadeAt: turn.askedAt,
      signal: AbortSignal.timeout(startMs),
    })
    return answer as Json
  }
  return async (call, tool) => {
    const { name } = tool.operation
    if (!startable.has(name) && !reducing.has(name)) return undefined
    const caller = starterOf(await deps.currentCaller(), name)
    if (!caller) return undefined
    // If an earlier run was stopped after the acceptance, the answer still says that the call was started.
    const isRepeat = earlier.some(({ id }) => id === call.id)
    const isStarted = isRepeat && (await deps.isStarted(turn.userId, deps.keyOf(call.id)))
    if (!isStarted) {
      if (startable.has(name) && !(await deps.hasBudget(turn.userId))) return undefined
      if (!(await isOrdered(call))) return undefined
    }
    await flush()
    try {
      return { output: await start(call, tool, caller) }
    } catch (error) {
      return notStarted(error)
    }
  }
}

/**
 * Returns the caller in whose name a turn starts a call; undefined if the turn may not start it. In a run, a call that
 * reduces a position counts as the schedule's, and any other call as that of a chat.
 */
function starterOf(caller: Caller, name: string): Caller | undefined {
  const { via } = caller
  if (typeof via !== 'object') return startable.has(name) ? { ...caller, via: 'chat' } : undefined
  return { ...caller, via: reducing.has(name) ? { ...via, reducesOwn: true } : { ...via, isChat: true } }
}

function notStarted(error: unknown): NotStarted {
  if (!(error instanceof Fault)) throw error
  const { code, message, extras } = error
  // The error makes the turn run again, and the next run finds the task under the same idempotency key.
  if (extras.outcome === 'unknown')
    throw new Error('it is not known whether the order was accepted', { cause: error })
  if (code === 'approval_required' || code === 'insufficient_scope') return { reason: code, detail: message }
  if (code === 'policy_denied' && (extras.rule === 'chat_per_day_usd' || extras.rule === 'own_position'))
    return { reason: extras.rule, detail: message }
  throw error
}
