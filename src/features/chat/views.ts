import type { Agent } from '#kernel/wire/chat-answerer.ts'
import type { ChatRecommendationRow, ChatTurnRow } from '#store/tables/chat.ts'
import { type ChatEvent, idOf } from './events.ts'
import type { ChatFileView } from './turn-files.ts'

export const recommendationView = (row: ChatRecommendationRow) => ({
  id: row.recommendation_id,
  title: row.title,
  detail: row.detail,
  action: {
    operation: row.operation,
    input: row.input as Record<string, unknown>,
    intent_sha256: row.intent_sha256,
    expires_at: row.expires_at.toISOString(),
  },
  status: row.status,
  task_id: row.task_id,
})

type Status = 'running' | 'completed' | 'failed' | 'cancelled'
type Parts = {
  events: readonly ChatEvent[]
  recommendations: readonly ChatRecommendationRow[]
  files: readonly ChatFileView[]
}

/** A turn is two messages: the question and its answer. */
export function messagesOf(turn: ChatTurnRow, { events, recommendations, files }: Parts) {
  const common = {
    chat_id: turn.chat_id,
    thread_id: turn.thread_id,
    query: turn.query,
    agent: turn.agent as Agent,
    created_at: turn.created_at.toISOString(),
  }
  const question = {
    ...common,
    role: 'user' as const,
    answer: null,
    status: 'completed' as const,
    events: [],
    recommendations: [],
    files: [],
    credits_used: 0,
  }
  const answer = {
    ...common,
    role: 'assistant' as const,
    answer: turn.answer,
    status: turn.status as Status,
    events: events.map(({ seq, event, data }) => ({ id: idOf(turn.chat_id, seq), event, data })),
    recommendations: recommendations.map(recommendationView),
    files: [...files],
    credits_used: turn.credits_used ?? 0,
  }
  return [question, answer]
}

type Done = { stop_reason?: 'end' | 'length' | 'credits'; credits_remaining?: number }
type Failure = { message: string; code: string; retryable: boolean }

export function answerOf(turn: ChatTurnRow, { recommendations, files }: Omit<Parts, 'events'>) {
  const done = (turn.last_event === 'done' ? turn.last_data : {}) as Done
  return {
    chat_id: turn.chat_id,
    thread_id: turn.thread_id,
    status: turn.status as Status,
    agent: turn.agent as Agent,
    answer: turn.answer,
    stop_reason: done.stop_reason ?? null,
    recommendations: recommendations.map(recommendationView),
    files: [...files],
    credits_used: turn.credits_used ?? 0,
    credits_remaining: done.credits_remaining ?? null,
    error: turn.last_event === 'error' ? (turn.last_data as Failure) : null,
  }
}
