import { LRUCache } from 'lru-cache'
import type { TaskQueries } from '#durable/task/task-queries.ts'
import { Fault, type Issue, notFound } from '#kernel/contract/fault.ts'
import { implement, type Operation, type StreamItem } from '#kernel/contract/operation.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { admitTurn } from './admission.ts'
import { contract } from './contract.ts'
import { decide, recommendationsOf } from './decide-recommendation.ts'
import { createAppend } from './event-writer.ts'
import { type ChatEvent, type ChatEventData, type EventName, idOf, isLast } from './events.ts'
import { completeEnd, type RunTurnDeps, runTurn } from './run-turn.ts'
import * as store from './store.ts'
import { type Tool, toolsOf } from './tool-registry.ts'
import { filesOf, fileViews } from './turn-files.ts'
import { type ChatListeners, createListeners } from './turn-streams.ts'
import { stepMs } from './turn-times.ts'
import { answerOf, messagesOf } from './views.ts'

export type ChatDeps = Omit<RunTurnDeps, 'append' | 'listeners' | 'tools' | 'credits' | 'budget'> &
  Omit<Parameters<typeof createListeners>[0], 'db' | 'clock'> & {
    credits: RunTurnDeps['credits'] & Parameters<typeof admitTurn>[0]['credits']
    budget: Omit<RunTurnDeps['budget'], 'isStarted'>
    operations: () => readonly Operation[]
    tasks: Pick<TaskQueries, 'cancel'>
    isUnavailable: (error: unknown) => boolean
  }
type Item = StreamItem<ChatEventData[EventName]>

/** How long the gateway collects an answer for a client that wants JSON, because such clients wait no longer. */
const collectMs = 90_000
const begunMax = 1_000
const listedEvents = { events: 2_000, bytes: 1_048_576 }

export function createChat(deps: ChatDeps): Operation[] {
  const { db } = deps
  let known: ReadonlyMap<string, Tool> | undefined
  const tools = () => {
    known ??= toolsOf(deps.operations())
    return known
  }
  const listeners = createListeners(deps)
  const runDeps: RunTurnDeps = {
    ...deps,
    tools,
    listeners,
    budget: { ...deps.budget, isStarted: (userId, key) => store.isKeyUsed(db, userId, key) },
    append: createAppend(db, deps.isUnavailable),
  }
  const begun = new LRUCache<string, JsonObject>({ max: begunMax })
  const followed: FollowDeps = { db, listeners, begun, files: deps.files }
  return implement(contract, {
    stream: {
      stepTimeoutMs: stepMs,
      isResumable: true,
      retry: { attemptsMax: 3, firstMs: 200, maxMs: 2_000 },
      admit: (input, caller) =>
        admitTurn({ ...deps, begun: (chatId, meta) => begun.set(chatId, meta) }, input, caller),
      steps: { answer: (task, context) => runTurn(runDeps, task, context) },
      completeEnd: (task, end) => completeEnd(deps, task, end),
      subscribe(chatId, { userId }, { lastEventId, signal }) {
        const seq = cursorOf(chatId, lastEventId)
        return items(chatId, eventsOf(followed, { chatId, userId }, seq, signal))
      },
      collect: (chatId, { userId }, { signal }) => collect(followed, { chatId, userId }, signal),
    },
    threads: async ({ skip = 0, limit = 10 }, { userId }) =>
      (await store.threadsOf(db, userId, { skip, limit })).map(summaryOf),
    thread: ({ thread_id }, { userId }) => messagesIn(deps, userId, thread_id),
    decide: decide({ ...deps, tools }),
    async cancel({ chat_id }, { userId }, { tx, afterCommit }) {
      // The check keeps a user from cancelling a task of another kind by this operation.
      await ownTurn(tx!, userId, chat_id)
      const act = { tx: tx!, afterCommit: afterCommit! }
      const { status, cancel_requested } = await deps.tasks.cancel(userId, chat_id, act)
      return { chat_id, status, cancel_requested }
    },
    async files({ chat_id }, { userId }) {
      await ownTurn(db, userId, chat_id)
      return { chat_id, files: await fileViews(deps.files, await filesOf(db, [chat_id])) }
    },
  })
}

type FollowDeps = Pick<ChatDeps, 'db' | 'files'> & {
  listeners: ChatListeners
  /** The first event of each turn that began on this instance, by the id of the turn. */
  begun: LRUCache<string, JsonObject>
}
type OwnTurn = { chatId: string; userId: string }

/** Yields the events of a turn as they were stored, or builds them from its row if they were deleted. */
async function* eventsOf(
  { db, listeners, begun }: FollowDeps,
  turn: OwnTurn,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<ChatEvent> {
  let seq = from
  const meta = begun.get(turn.chatId)
  if (meta && seq === 0) {
    begun.delete(turn.chatId)
    seq = 1
    yield { seq, event: 'meta', data: meta }
  }
  for await (const event of listeners.follow(turn, seq, signal)) {
    seq = event.seq
    yield event
    if (isLast(event.event)) return
  }
  if (!signal.aborted) yield* foldedEvents(await ownTurn(db, turn.userId, turn.chatId), seq)
}

async function ownTurn(db: Queryable, userId: string, chatId: string): Promise<store.ChatTurnRow> {
  const turn = await store.findTurn(db, chatId)
  if (turn?.user_id !== userId) throw notFound('chat', 'chat_threads')
  return turn
}

async function collect(followed: FollowDeps, turn: OwnTurn, signal: AbortSignal) {
  const { db } = followed
  const { chatId, userId } = turn
  const ended = AbortSignal.any([signal, AbortSignal.timeout(collectMs)])
  for await (const _ of eventsOf(followed, turn, 0, ended));
  const [recommendations, files] = await Promise.all([recommendationsOf(db, [chatId]), filesOf(db, [chatId])])
  return answerOf(await ownTurn(db, userId, chatId), {
    recommendations,
    files: await fileViews(followed.files, files),
  })
}

async function messagesIn(deps: Pick<ChatDeps, 'db' | 'files'>, userId: string, threadId: string) {
  const { db } = deps
  const thread = await store.findThread(db, userId, threadId)
  if (!thread) throw notFound('thread', 'chat_threads')
  const turns = await store.turnsOf(db, thread.thread_id)
  const ids = turns.map(({ chat_id }) => chat_id)
  const [events, recommendations, files] = await Promise.all([
    store.newestEvents(db, ids, listedEvents),
    recommendationsOf(db, ids),
    filesOf(db, ids),
  ])
  const recommendationsByTurn = Map.groupBy(recommendations, ({ chat_id }) => chat_id)
  const filesByTurn = Map.groupBy(files, ({ chat_id }) => chat_id)
  const messages = turns.map(async (turn) =>
    messagesOf(turn, {
      events: events.get(turn.chat_id) ?? [],
      recommendations: recommendationsByTurn.get(turn.chat_id) ?? [],
      files: await fileViews(deps.files, filesByTurn.get(turn.chat_id) ?? []),
    }),
  )
  return (await Promise.all(messages)).flat()
}

async function* items(chatId: string, events: AsyncIterable<ChatEvent>): AsyncGenerator<Item> {
  for await (const { seq, event, data } of events)
    yield { id: idOf(chatId, seq), event, data: data as ChatEventData[EventName] }
}

/** Reads the cursor of a stream before the stream begins, so that a wrong cursor is an error of the request. */
function cursorOf(chatId: string, lastEventId: string | undefined): number {
  if (lastEventId === undefined || lastEventId === '') return 0
  const [id, seq = ''] = lastEventId.split(':')
  if (id === chatId && /^\d{1,9}$/.test(seq)) return Number(seq)
  const msg =
    'Input should be the id of an event of this answer; without it the answer comes from its beginning'
  const issue: Issue = { location: 'header', path: ['Last-Event-ID'], msg, type: 'string_pattern_mismatch' }
  throw new Fault('validation', msg, { issues: [issue] })
}

function foldedEvents(turn: store.ChatTurnRow, seq: number): ChatEvent[] {
  const { last_event, last_data, last_seq, answer } = turn
  if (last_event === null || last_seq === null)
    throw new Fault('unavailable', 'The answer was stopped and has no end yet; read the thread in a moment')
  const last: ChatEvent = { seq: last_seq, event: last_event, data: last_data as JsonObject }
  const whole: ChatEvent = { seq: last_seq - 1, event: 'answer', data: { text: answer ?? '', citations: [] } }
  return [...(last_event === 'done' && answer ? [whole] : []), last].filter((event) => event.seq > seq)
}

const summaryOf = (row: store.ChatThreadRow) => ({
  thread_id: row.thread_id,
  title: row.title,
  last_message: row.last_message,
  agent: row.agent as never,
  message_count: row.message_count,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
