import type { Generated } from 'kysely'
export type ChatThreadRow = {
  thread_id: string
  user_id: string
  title: string
  agent: string
  last_message: string
  message_count: number
  memory: object | null
  created_at: Date
  updated_at: Date
}
export type ChatTurnRow = {
  chat_id: string
  thread_id: string
  user_id: string
  agent: string
  query: string
  caller: object
  status: string
  answer: string | null
  last_event: 'done' | 'error' | null
  last_data: object | null
  last_seq: number | null
  credits_used: number | null
  listened_at: Date
  created_at: Date
  completed_at: Date | null
}
export type ChatRecommendationRow = {
  recommendation_id: string
  chat_id: string
  call_id: string
  user_id: string
  title: string
  detail: string
  operation: string
  input: object
  intent_sha256: string
  status: 'open' | 'accepted' | 'declined'
  deciding_until: Date | null
  task_id: string | null
  created_at: Date
  updated_at: Date
  expires_at: Date
}
export type ChatTables = {
  chat_thread: ChatThreadRow
  chat_turn: ChatTurnRow
  chat_event: { chat_id: string; seq: number; epoch: number; event: string; data: object; bytes: number }
  app_credits: {
    user_id: string
    client_id: string
    per_day: Generated<number>
    day: Generated<Date>
    used: Generated<number>
  }
  chat_call: { chat_id: string; call_id: string; output: object }
  chat_recommendation: ChatRecommendationRow
  chat_file: { chat_id: string; position: number; file_id: string; name: string; size: number }
}
