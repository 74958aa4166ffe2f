import type { PastMessage } from '#kernel/wire/chat-answerer.ts'
import { type Queryable, query } from '#store/query.ts'

const turnsMax = 10
const tokensMax = 24_000
const charactersPerToken = 4
/** Longer messages are cut at the end, because the beginning says what a message is about. */
const messageCharactersMax = 16_000

/** Only turns that had ended when this one was asked are read, so that a repeated run reads the same history. */
export const historySql = `select left(query, $3) as query, left(coalesce(answer, ''), $3) as answer
  from chat_turn where thread_id = $1 and chat_id < $2 and completed_at is not null
    and completed_at <= (select created_at from chat_turn where chat_id = $2)
  order by chat_id desc limit $4`

type Row = { query: string; answer: string }

export async function historyOf(
  db: Queryable,
  { threadId, chatId }: { threadId: string; chatId: string },
): Promise<PastMessage[]> {
  const rows = await query<Row>(db, historySql, [threadId, chatId, messageCharactersMax, turnsMax])
  const newestFirst = rows.flatMap(({ query: question, answer }): PastMessage[] => [
    ...(answer === '' ? [] : [{ role: 'assistant' as const, text: answer }]),
    { role: 'user', text: question },
  ])
  const messages: PastMessage[] = []
  let left = tokensMax * charactersPerToken
  for (const message of newestFirst) {
    left -= message.text.length
    if (left < 0) break
    messages.push(message)
  }
  // An answer without its question says nothing, so the history never begins with one.
  if (messages.at(-1)?.role === 'assistant') messages.pop()
  return messages.reverse()
}
