import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger } from '#durable/ledger/ledger.ts'
import type { Files } from '#engines/files/files.ts'
import { currentCaller, type StoredCaller } from '#engines/stored-callers/stored-caller.ts'
import type { Credits } from '#features/credits/credits.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { ModelPrices, Usage } from '#kernel/money/model-token-prices.ts'
import { postDraw } from '#kernel/task/ledger-draw.ts'
import type { EndResult, StepContext, StepEnd, TaskView, Tx } from '#kernel/task/task.ts'
import type {
  Agent,
  Answerer,
  Citation,
  OwnedTurn,
  StopReason,
  ToolCall,
  TurnEnd,
} from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { createEmit } from './answer-emitter.ts'
import { returnAppCredits } from './app-credits.ts'
import { keyOfCall } from './call-identity.ts'
import { chargeOf } from './credits-per-turn.ts'
import {
  type AppendEvents,
  createEventWriter,
  type EventWriter,
  eventsPerTurnMax,
  sized,
} from './event-writer.ts'
import type { ChatEvent, ChatEventData, EventName } from './events.ts'
import { grammarMandate } from './grammar-mandate.ts'
import { historyOf } from './history.ts'
import type { Mandate } from './mandate.ts'
import { usageOfNotes } from './memoized-values.ts'
import * as store from './store.ts'
import { createTools, type ToolDeps } from './tool-runner.ts'
import { createPublish } from './turn-files.ts'
import type { ChatListeners, StopCause } from './turn-streams.ts'
import { turnMs } from './turn-times.ts'
import type { NamedUniverse } from './universe.ts'

export type RunTurnDeps = Omit<ToolDeps, 'currentCaller' | 'mandate' | 'keyOf' | 'publish' | 'history'> & {
  files: Files
  /** Returns what the grammar knows: the names of assets and chains, and the operations. */
  universe: () => Promise<Pick<NamedUniverse, 'registry'>>
  /** Returns an idempotency key that no client can send. */
  keyOf: (name: string) => string
  db: Queryable
  append: AppendEvents
  listeners: ChatListeners
  answerer: Answerer
  /**
   * Waits for a turn of the user on the event loop. The users take turns, so many questions of one user delay a
   * question of another user by no more than one.
   */
  inTurn: (userId: string) => Promise<void>
  ledger: Pick<Ledger, 'drawn'>
  credits: Pick<Credits, 'available'>
  prices: ModelPrices | undefined
  clock: Clock
}

/** How long an answerer may take to notice that its turn has to end. */
const settleMs = 2_000

type Stop = StopCause | 'deadline'
type Ending = {
  status: 'completed' | 'cancelled'
  stopReason: StopReason
  citations: Citation[]
  memory: JsonObject | null | undefined
  usage?: Usage | undefined
}

export async function runTurn(
  deps: RunTurnDeps,
  task: TaskView,
  { signal }: StepContext,
): Promise<EndResult> {
  const { db, listeners, append } = deps
  const [turn, stored, calls, drawn] = await Promise.all([
    requireTurn(db, task.id),
    store.eventsAfter(db, task.id, 0, eventsPerTurnMax),
    store.callsOf(db, task.id),
    deps.ledger.drawn(db, task.id),
  ])
  const stopped = Promise.withResolvers<Stop>()
  using _limit = timeLimit(turn.agent as Agent, turn.created_at, deps.clock, () =>
    stopped.resolve('deadline'),
  )
  const isUnattended = (turn.caller as StoredCaller).run !== undefined
  const identity = { chatId: turn.chat_id, userId: turn.user_id, isUnattended }
  using run = listeners.run(identity, [...stored], stopped.resolve)
  const ended = new AbortController()
  const writer = createEventWriter({
    append,
    chatId: turn.chat_id,
    version: task.version,
    seq: stored.at(-1)?.seq ?? 0,
    onStored: (events) => run.stored(events),
  })
  try {
    await store.noteQuestion(db, turn, store.excerptOf(turn.query))
    const answering = answer(
      deps,
      { turn, stored, calls, writer, version: task.version, heldUnits: sumOf(drawn) },
      AbortSignal.any([signal, ended.signal]),
    )
    const first = await Promise.race([answering, stopped.promise])
    let late: TurnEnd | undefined
    if (typeof first === 'string') {
      ended.abort(new Error('The turn is stopped', { cause: first }))
      // A stopped answerer may write for a moment longer. That text belongs to the answer, and its tokens have to be
      // paid.
      late =
        (await Promise.race([
          answering.catch(() => undefined),
          pause(settleMs, undefined, { ref: false }),
        ])) ?? undefined
    }
    signal.throwIfAborted()
    const ending =
      typeof first === 'string'
        ? { ...endingOf(first), usage: late?.usage ?? usageOfNotes(await store.callsOf(db, task.id)) }
        : { status: 'completed' as const, ...first }
    writer.close()
    await writer.flush()
    return await settleTurn(deps, { turn, version: task.version, ending })
  } finally {
    ended.abort()
    writer.close()
  }
}

const sumOf = (drawn: readonly { amountUnits: bigint }[]): bigint =>
  drawn.reduce((sum, { amountUnits }) => sum + amountUnits, 0n)

function timeLimit(agent: Agent, since: Date, clock: Clock, run: () => void): Disposable {
  const leftMs = since.getTime() + turnMs[agent] - clock.now().getTime()
  const timer = setTimeout(run, Math.max(0, leftMs))
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}

async function requireTurn(db: Queryable, chatId: string): Promise<store.ChatTurnRow> {
  const turn = await store.findTurn(db, chatId)
  if (!turn) throw new Error(`the turn ${chatId} is gone`)
  return turn
}

type Answering = {
  turn: store.ChatTurnRow
  stored: readonly ChatEvent[]
  calls: readonly store.StoredResult[]
  writer: EventWriter
  version: number
  heldUnits: bigint
}

async function answer(
  deps: RunTurnDeps,
  { turn: row, stored, calls, writer, version, heldUnits }: Answering,
  signal: AbortSignal,
): Promise<TurnEnd> {
  const thread = await store.threadOf(deps.db, row.thread_id)
  const said = createEmit(writer, stored)
  const turn: OwnedTurn = {
    userId: row.user_id,
    chatId: row.chat_id,
    agent: row.agent as Agent,
    query: row.query,
    askedAt: row.created_at,
    memory: (thread?.memory ?? null) as JsonObject | null,
    said: said.text(),
    creditsMax: Number(heldUnits),
  }
  const announced = stored
    .filter(({ event }) => event === 'tool_call')
    .map(({ data }) => toCall(data.data as JsonObject))
  let mandate: Promise<Mandate> | undefined
  const tools = createTools(
    {
      ...deps,
      history: () => historyOf(deps.db, { threadId: row.thread_id, chatId: row.chat_id }),
      publish: createPublish(deps, { chatId: turn.chatId, userId: row.user_id, version }),
      mandate() {
        mandate ??= openMandate(deps, turn)
        return mandate
      },
      keyOf: (callId) => deps.keyOf(keyOfCall(turn.chatId, callId)),
      currentCaller: () => currentCaller(deps.db, row.user_id, row.caller as StoredCaller, deps.clock.now()),
    },
    { turn, writer, stored: calls, announced, signal },
  )
  await deps.inTurn(turn.userId)
  return deps.answerer.run(turn, tools, said.emit, signal)
}

async function openMandate(
  { universe, inTurn }: Pick<RunTurnDeps, 'universe' | 'inTurn'>,
  turn: OwnedTurn,
): Promise<Mandate> {
  const { registry } = await universe()
  // Reading a whole text blocks the event loop, so users take turns on it, and other work goes on between texts.
  await inTurn(turn.userId)
  return grammarMandate(turn, registry)
}

const toCall = ({ id, name, arguments: input }: JsonObject): ToolCall => ({
  id: String(id),
  name: String(name),
  input: input as JsonObject,
})

function endingOf(stop: Stop): Ending {
  if (stop === 'suspended')
    throw new Fault('suspended', 'The account is suspended; ask the operator of this gateway')
  return {
    status: stop === 'deadline' ? 'completed' : 'cancelled',
    stopReason: stop === 'deadline' ? 'length' : 'end',
    citations: [],
    memory: undefined,
  }
}

type SettlingTurn = {
  turn: store.ChatTurnRow
  version: number
  ending: Ending
}

/** Charges an ended turn; a turn that ends before it has said or read anything costs nothing. */
async function settleTurn(
  { db, ledger, credits, prices, clock }: RunTurnDeps,
  { turn, version, ending }: SettlingTurn,
): Promise<EndResult> {
  const drawn = await ledger.drawn(db, turn.chat_id)
  const held = sumOf(drawn)
  const { seq } = await store.spokenOf(db, turn.chat_id)
  const isHeld = await store.isHeld(db, turn.chat_id)
  const charge = chargeOf(turn.agent as Agent, held, { usage: ending.usage, prices, isHeld })
  const used = seq <= 1 ? 0n : charge
  const { status, stopReason: stop_reason } = ending
  const result = { chat_id: turn.chat_id, thread_id: turn.thread_id, stop_reason, credits_used: Number(used) }
  const writes = async (tx: Tx) => {
    const { text } = await store.spokenOf(tx, turn.chat_id)
    const remaining = (await credits.available(turn.user_id, tx)) + Number(held - used)
    const done: ChatEventData['done'] = {
      chat_id: turn.chat_id,
      status,
      stop_reason,
      credits_used: Number(used),
      credits_remaining: remaining,
    }
    await storeEnd(tx, turn, {
      version,
      status,
      creditsUsed: Number(used),
      memory: ending.memory,
      at: clock.now(),
      events: [
        ...(text === '' ? [] : [['answer', { text, citations: ending.citations }] as const]),
        ['done', done],
      ],
    })
  }
  const rest = { moves: postDraw(drawn, used), writes, result }
  if (status === 'completed') return { ...rest, end: 'completed', outcome: 'executed' }
  const error = { code: 'cancelled_by_user', message: 'The answer was stopped' }
  return { ...rest, end: 'cancelled', outcome: used > 0n ? 'partial' : 'not_executed', error }
}

type Stored = {
  version: number
  status: store.Ended['status']
  creditsUsed: number
  memory: JsonObject | null | undefined
  at: Date
  events: readonly (readonly [EventName, object])[]
}

async function storeEnd(tx: Tx, turn: store.ChatTurnRow, end: Stored): Promise<void> {
  await returnAppCredits(tx as Queryable, turn, end.creditsUsed)
  const { seq, text } = await store.spokenOf(tx, turn.chat_id)
  await store.endTurn(tx, {
    chatId: turn.chat_id,
    threadId: turn.thread_id,
    status: end.status,
    answer: text,
    excerpt: store.excerptOf(text === '' ? turn.query : text),
    events: end.events.map(([event, data], at) =>
      sized({ seq: seq + 1 + at, event, data: data as JsonObject }),
    ),
    epoch: end.version,
    creditsUsed: end.creditsUsed,
    memory: end.memory,
    at: end.at,
  })
}

export function completeEnd(
  { db, ledger, credits, clock }: Pick<RunTurnDeps, 'db' | 'ledger' | 'credits' | 'clock'>,
  task: TaskView,
  end: EndResult,
): EndResult {
  const { end: status, ...rest } = end as StepEnd
  return {
    ...end,
    async writes(tx) {
      const turn = await requireTurn(tx as typeof db, task.id)
      const ended = { version: task.version, creditsUsed: 0, memory: undefined, at: clock.now() }
      if (status === 'cancelled') {
        const { text } = await store.spokenOf(tx, task.id)
        const held = sumOf(await ledger.drawn(tx as typeof db, task.id))
        const remaining = (await credits.available(turn.user_id, tx)) + Number(held)
        const done: ChatEventData['done'] = {
          chat_id: task.id,
          status,
          stop_reason: 'end',
          credits_used: 0,
          credits_remaining: remaining,
        }
        const events = [
          ...(text === '' ? [] : [['answer', { text, citations: [] }] as const]),
          ['done', done] as const,
        ]
        return storeEnd(tx, turn, { ...ended, status, events })
      }
      const { code, message, retryable = false } = 'error' in rest ? rest.error : unknownError
      await storeEnd(tx, turn, {
        ...ended,
        status: 'failed',
        events: [['error', { message, code, retryable }]],
      })
    },
  }
}

const unknownError = { code: 'internal', message: 'The answer could not be given', retryable: true }
