import { storedCaller } from '#engines/stored-callers/stored-caller.ts'
import type { Credits } from '#features/credits/credits.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import type { InputOf } from '#kernel/contract/operation.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { ModelPrices } from '#kernel/money/model-token-prices.ts'
import type { Admission, FeatureRows } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { findAppCredits, reserveAppCredits } from './app-credits.ts'
import { type contract, turnsPerThreadMax } from './contract.ts'
import { creditsOfAgent, creditsOfModel, defaultAgent } from './credits-per-turn.ts'
import { sized } from './event-writer.ts'
import * as store from './store.ts'
import { turnDeadlineMs } from './turn-times.ts'

type AdmissionDeps = {
  db: Queryable
  credits: Pick<Credits, 'draw'>
  /**
   * The token prices of the model, because tokens may cost more than the agent's price; undefined if no model answers.
   */
  prices: ModelPrices | undefined
  clock: Clock
  random: Random
  /** Called with a turn's first event, so that a stream on this instance can send the event before it is stored. */
  begun: (chatId: string, meta: JsonObject) => void
}
type ChatInput = InputOf<(typeof contract)['entries']['stream']>

const titleCharacters = 80
/** A thread is read as a whole, so the stored answers of one thread are limited to this many bytes. */
const answerBytesPerThreadMax = 4 * 1_048_576

export async function admitTurn(
  { db, credits, prices, clock, random, begun }: AdmissionDeps,
  { query, thread_id, agent = defaultAgent }: ChatInput,
  caller: Caller,
): Promise<Admission> {
  const { userId } = caller
  const thread = thread_id ? await openThread(db, userId, thread_id) : undefined
  const now = clock.now()
  const min = creditsOfAgent[agent]
  const max = (prices ? creditsOfModel : creditsOfAgent)[agent]
  // The transaction that accepts the chat of a run may still refuse it. So the credits are only looked up here, and
  // that transaction reserves them.
  const allow = typeof caller.via === 'object' ? findAppCredits : reserveAppCredits
  const ofApp = await allow(db, caller, { min, max, now })
  const draw = await credits.draw(userId, min, 'chat', ofApp ?? max)
  const at = now.toISOString()
  const chatId = uuidv7(now, random)
  const threadId = thread?.thread_id ?? uuidv7(now, random)
  const meta = { chat_id: chatId, thread_id: threadId }
  const turn: JsonObject = {
    ...meta,
    user_id: userId,
    agent,
    query,
    caller: { ...storedCaller(caller), ...(ofApp !== undefined && { appCredits: Number(ofApp) }) },
    status: 'running',
    listened_at: at,
    created_at: at,
  }
  const first: JsonObject = {
    ...sized({ seq: 1, event: 'meta', data: meta }),
    chat_id: chatId,
    epoch: 1,
  }
  const rows: FeatureRows[] = [
    { table: 'chat_turn', rows: [turn] },
    { table: 'chat_event', rows: [first] },
  ]
  if (!thread) rows.push({ table: 'chat_thread', rows: [newThread(turn)] })
  begun(chatId, meta)
  return { taskId: chatId, data: meta, first: 'answer', deadlineMs: turnDeadlineMs, draw, rows }
}

function newThread({ thread_id, user_id, agent, query, created_at }: JsonObject): JsonObject {
  const excerpt = store.excerptOf(String(query))
  const title = excerpt.length > titleCharacters ? `${excerpt.slice(0, titleCharacters - 1)}…` : excerpt
  return {
    thread_id: thread_id!,
    user_id: user_id!,
    agent: agent!,
    title,
    last_message: excerpt,
    message_count: 2,
    memory: null,
    created_at: created_at!,
    updated_at: created_at!,
  }
}

async function openThread(db: Queryable, userId: string, id: string): Promise<store.ChatThreadRow> {
  const thread = await store.findThread(db, userId, id)
  if (!thread) throw notFound('thread', 'chat_threads')
  const { turns, bytes } = await store.sizeOfThread(db, thread.thread_id)
  if (turns >= turnsPerThreadMax)
    throw new Fault('conflict', `A thread has at most ${turnsPerThreadMax} questions: begin a new one`)
  if (bytes >= answerBytesPerThreadMax)
    throw new Fault('conflict', 'The answers of this thread are 4 MiB: begin a new one')
  return thread
}
