import type { InnerCalls } from '#invoke/inner-calls.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type {
  OwnedTurn,
  PastMessage,
  ToolCall,
  ToolDescription,
  ToolResult,
  Tools,
} from '#kernel/wire/chat-answerer.ts'
import { isRecord, type Json, type JsonObject } from '#kernel/wire/json.ts'
import { shorten } from '#kernel/wire/shorten-json.ts'
import { callHash } from './call-identity.ts'
import { type BudgetDeps, createStarter, type NotStarted, type Starter } from './call-starter.ts'
import type { EventWriter } from './event-writer.ts'
import type { InnerTool } from './inner-tool.ts'
import type { MadeCall, Mandate } from './mandate.ts'
import { createNote, isNote } from './memoized-values.ts'
import {
  type RecommendationText,
  recommendationText,
  withStarted,
} from './recommendation/recommendation-text.ts'
import type { Lists } from './recommendation/value-words.ts'
import type { StoredResult } from './store.ts'
import { descriptionOf, isWithin, type Tool } from './tool-registry.ts'
import { hasForeignText } from './untrusted-text.ts'

/** The results of tools are stored with their events, so that a repeated run of a turn makes no call twice. */

export type ToolDeps = {
  tools: () => ReadonlyMap<string, Tool>
  innerTools: ReadonlyMap<string, InnerTool>
  publish: Tools['publish']
  history: () => Promise<readonly PastMessage[]>
  calls: () => InnerCalls
  currentCaller: () => Promise<Caller>
  /** Reads which calls the words of the user allow; it runs before the first call that needs to be allowed. */
  mandate: () => Promise<Mandate>
  /** Returns the idempotency key of a call that changes something, so that a repeated run changes nothing more. */
  keyOf: (callId: string) => string
  budget: BudgetDeps
  lists: Lists
  clock: Clock
  random: Random
}
type TurnParts = {
  turn: OwnedTurn
  writer: EventWriter
  stored: readonly StoredResult[]
  announced: readonly ToolCall[]
  signal: AbortSignal
}

const callsMax = 40
const recommendationsMax = 3
const recommendationMs = 15 * 60_000
const outputBytesMax = 256 * 1_024
const inputBytesMax = 64 * 1_024
const callMs = 20_000

export function createTools(deps: ToolDeps, parts: TurnParts): Tools {
  const results = parts.stored.filter(({ call_id }) => !isNote(call_id))
  const known = new Map(results.map(({ call_id, output }) => [call_id, toResult(output)]))
  const made: MadeCall[] = []
  const proposed = new Set<string>()
  const announced = new Set(parts.announced.map(({ id }) => id))
  const start = createStarter(
    { ...deps, ...deps.budget },
    {
      turn: parts.turn,
      flush: parts.writer.flush,
      earlier: parts.announced.filter(
        ({ id, name, input }) =>
          deps.tools().get(name)?.effectOf(input) === 'change' && !isProposal(known.get(id)),
      ),
      made,
      signal: parts.signal,
    },
  )
  const taint = createTaint(deps, made)
  let called = 0
  return {
    publish: deps.publish,
    async history() {
      const messages = await deps.history()
      if (messages.some(({ role }) => role === 'assistant')) taint.add()
      return messages
    },
    describe: () => describe(deps),
    note: createNote(parts.writer, parts.stored),
    async call(call) {
      const earlier = known.get(call.id)
      called += 1
      if (called > callsMax) throw new Fault('conflict', `An answer calls at most ${callsMax} tools`)
      if (earlier) {
        if (isProposal(earlier)) proposed.add(call.id)
        made.push({ call, result: earlier })
        return earlier
      }
      const { id, name, input } = call
      if (Buffer.byteLength(JSON.stringify(input)) > inputBytesMax)
        throw new Fault('body_too_large', `The arguments of a call have at most ${inputBytesMax} bytes`)
      if (isNote(id)) throw new Fault('conflict', 'The id of a call begins as that of a note')
      if (!announced.has(id))
        void parts.writer.add('tool_call', {
          v4_event: 'tool_started',
          data: { id, name, arguments: input },
        })
      const { result, recommendation, isHeld } = await perform(deps, parts, call, {
        proposed,
        made,
        start,
        taint,
      })
      made.push({ call, result })
      const output: JsonObject = result.ok
        ? { output: result.output }
        : { code: result.code, message: result.message }
      await parts.writer.add(
        'tool_response',
        {
          type: result.ok ? 'result' : 'error',
          data: { id, name, output: shorten(result.ok ? result.output : output) },
        },
        {
          call: {
            call_id: id,
            output: {
              ok: result.ok,
              fetched_at: result.fetchedAt.toISOString(),
              ...output,
              ...(isHeld && { is_held: true }),
            },
          },
          ...(recommendation && { recommendation }),
        },
      )
      return result
    },
  }
}

async function describe({ tools, innerTools, calls, currentCaller }: ToolDeps): Promise<ToolDescription[]> {
  const { scopes } = await currentCaller()
  const inner = [...innerTools].map(([name, { description, inputSchema }]): ToolDescription => {
    return { name, description, inputSchema, effect: 'read', hasDryRun: false }
  })
  const operations = [...tools().values()].filter(({ operation }) => isWithin(operation, scopes))
  const described = operations.map((tool) => descriptionOf(tool, calls().inputSchemaOf(tool.operation)))
  return structuredClone([...described, ...inner])
}

function toResult(stored: JsonObject): ToolResult {
  const fetchedAt = new Date(String(stored.fetched_at))
  if (stored.ok === true) return { ok: true, output: stored.output as Json, fetchedAt }
  return { ok: false, code: String(stored.code), message: String(stored.message), fetchedAt }
}

const isProposal = (result: ToolResult | undefined): boolean =>
  result?.ok === true && isRecord(result.output) && 'recommendation_id' in result.output

/** The result of one call; `isHeld` says that the call was refused because money is on hold. */
type Performed = { result: ToolResult; recommendation?: JsonObject; isHeld?: boolean }

type Performing = { proposed: Set<string>; made: readonly MadeCall[]; start: Starter; taint: Taint }

/** Performs one call of a turn; a refusal is also a result, so that the answerer can say what was refused. */
async function perform(
  deps: ToolDeps,
  parts: TurnParts,
  call: ToolCall,
  { proposed, made, start, taint }: Performing,
): Promise<Performed> {
  const fetchedAt = deps.clock.now()
  try {
    const inner = deps.innerTools.get(call.name)
    if (inner)
      return {
        result: {
          ok: true,
          output: await inner.call(call.input, { userId: parts.turn.userId, signal: parts.signal }),
          fetchedAt,
        },
      }
    const tool = deps.tools().get(call.name)
    if (!tool) throw new Fault('not_found', `There is no tool ${call.name}`)
    const effect = tool.effectOf(call.input)
    if (effect === 'tighten' && !(await deps.mandate()).take(call, made)) throw notAsked(call.name)
    if (effect === 'change') {
      deps.calls().check(tool.operation, call.input)
      const text = recommendationText(tool.operation, call.input, deps.lists)
      const isAsked = call.isFromModel !== true || (await isAllowed(deps, call, made))
      const started = await start(call, tool)
      if (started && 'output' in started)
        return { result: { ok: true, output: withStarted(bounded(started.output), text), fetchedAt } }
      // Text that a tool returned may have asked for this call, because the user's words did not.
      if (!isAsked && (await taint.has())) throw notAsked(call.name)
      await throwIfRefused(deps, tool, call.input)
      return propose(deps, parts, call, { tool, text, proposed, fetchedAt, notStarted: started })
    }
    const output = await deps.calls().call({
      operation: tool.operation,
      input: call.input,
      caller: await deps.currentCaller(),
      ...(effect === 'tighten' && { key: deps.keyOf(call.id) }),
      signal: AbortSignal.any([parts.signal, AbortSignal.timeout(callMs)]),
    })
    return { result: { ok: true, output: bounded(output as Json), fetchedAt } }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { code, extras } = error
    return {
      result: { ok: false, code, message: messageOf(error), fetchedAt },
      isHeld: extras.reason === 'money_on_hold',
    }
  }
}

/** These codes say that somebody else has to agree, or that the call may succeed a moment later. */
const openCodes: readonly string[] = [
  'approval_required',
  'step_up_required',
  'insufficient_scope',
  'rate_limited',
]
const admitMs = 10_000

/**
 * Throws the fault with which the gateway would refuse what is about to be recommended: too much leverage, too little,
 * more than there is. Where the gateway cannot say so in time, it is recommended. What was quoted was checked by that.
 */
async function throwIfRefused(
  { calls, currentCaller }: ToolDeps,
  { operation, hasDryRun }: Tool,
  input: JsonObject,
): Promise<void> {
  if (hasDryRun) return
  // A recommendation is accepted by a user, and not by a run of a schedule.
  const { via: _run, ...caller } = await currentCaller()
  try {
    await withTimeLimit(calls().admit({ operation, input, caller }), admitMs)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (error.status < 500 && !openCodes.includes(error.code)) throw error
  }
}

const isAllowed = async ({ mandate }: ToolDeps, call: ToolCall, made: readonly MadeCall[]) =>
  (await mandate()).take(call, made)

type Taint = { add(): void; has(): Promise<boolean> }

/** Tracks whether a model may have read text by strangers or by another model. */
function createTaint({ mandate }: ToolDeps, made: readonly MadeCall[]): Taint {
  let isTainted = false
  return {
    add() {
      isTainted = true
    },
    async has() {
      const { isListed } = await mandate()
      isTainted ||= made.some(({ result }) =>
        result.ok ? hasForeignText(result.output, isListed) : result.code !== 'validation',
      )
      return isTainted
    },
  }
}

const notAsked = (name: string): Fault =>
  new Fault('policy_denied', `Nothing that the user said asks for ${name}`, {
    extras: { rule: 'no_mandate' },
  })

/** The message of a validation fault (422) does not name the fields, so they are listed instead. */
const messageOf = ({ message, issues }: Fault): string =>
  issues.length === 0
    ? message
    : issues.map(({ path, msg }) => [path.join('.'), msg].filter((part) => part !== '').join(': ')).join('; ')

function bounded(output: Json): Json {
  return Buffer.byteLength(JSON.stringify(output ?? null)) <= outputBytesMax ? output : shorten(output)
}

type Proposing = {
  tool: Tool
  text: RecommendationText
  proposed: Set<string>
  fetchedAt: Date
  notStarted: NotStarted | undefined
}

function propose(
  { clock, random }: ToolDeps,
  { turn }: TurnParts,
  { id, input }: ToolCall,
  { tool: { operation }, text, proposed, fetchedAt, notStarted }: Proposing,
): Performed {
  if (proposed.size >= recommendationsMax)
    throw new Fault('policy_denied', `An answer recommends at most ${recommendationsMax} actions`, {
      extras: { rule: 'no_mandate' },
    })
  proposed.add(id)
  const now = clock.now()
  const recommendationId = uuidv7(now, random)
  const recommendation: JsonObject = {
    recommendation_id: recommendationId,
    chat_id: turn.chatId,
    call_id: id,
    user_id: turn.userId,
    ...text,
    operation: operation.name,
    input,
    intent_sha256: callHash(operation.name, input),
    status: 'open',
    deciding_until: null,
    task_id: null,
    created_at: now.toISOString(),
    updated_at: now.toISOString(),
    expires_at: later(now, recommendationMs).toISOString(),
  }
  const output = { recommendation_id: recommendationId, status: 'open', ...notStarted }
  return { result: { ok: true, output, fetchedAt }, recommendation }
}
