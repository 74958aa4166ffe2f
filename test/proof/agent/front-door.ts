/** Asks the chat at the front door, and collects what it said, called, recommended and remembered. */
import assert from 'node:assert/strict'
import type pg from 'pg'
import { isEnd, readChat } from '../../chat/read-chat.ts'
import { bearer } from '../../harness/gateway.ts'
import type { SentEvent } from '../../harness/stream.ts'
import type { Person } from '../../journeys/users.ts'

export type Proposal = { operation: string; input: Record<string, unknown> }
export type ThreadNotes = {
  last?: { intent: string; slots: Record<string, string> }
  pending?: { intent: string; slots: Record<string, string>; slot: string }
}
export type Citation = { tool: string; pointer: string }
export type Answer = {
  text: string
  plan: string
  tools: string[]
  /** The calls that were made at once, with their arguments. */
  calls: Proposal[]
  citations: Citation[]
  proposals: Proposal[]
  memory: ThreadNotes
}

export function createFrontDoor({ url, person, db }: { url: string; person: Person; db: pg.Pool }) {
  async function ask(query: string, thread_id?: string): Promise<{ events: SentEvent[]; threadId: string }> {
    const events = await readChat({
      url,
      query,
      headers: bearer(person),
      ...(thread_id !== undefined && { body: { thread_id } }),
    })
    const end = events.find(isEnd)
    assert.equal(end?.event, 'done', `${query}: ${JSON.stringify(end)}`)
    return { events, threadId: (events[0]!.data as { thread_id: string }).thread_id }
  }

  return {
    async answerTo(text: string, thread: readonly string[] = []): Promise<Answer> {
      let threadId: string | undefined
      for (const earlier of thread) threadId = (await ask(earlier, threadId)).threadId
      const { events, threadId: own } = await ask(text, threadId)
      const stored = await db.query<{ memory: ThreadNotes }>(
        'select memory from chat_thread where thread_id = $1',
        [own],
      )
      type Message = { recommendations: { action: Proposal | null }[] }
      const { body } = await person.call<Message[]>(`GET /v1/chat/threads/${own}`)
      const dataOf = (name: string) =>
        events.filter(({ event }) => event === name).map(({ data }) => data as Record<string, never>)
      const started = dataOf('planning').find((each) => each.v4_event === 'plan_started')
      const answers = dataOf('answer')
      type Called = { name: string; arguments: Record<string, unknown> }
      const calls = dataOf('tool_call').map(({ data }) => {
        const { name: operation, arguments: input } = data as unknown as Called
        return { operation, input }
      })
      return {
        text: answers.map((each) => String(each.text)).join(''),
        plan: started ? String((started.data as unknown as { text: string }).text) : '',
        tools: calls.map(({ operation }) => operation),
        calls,
        citations: answers.flatMap((each) => (each.citations ?? []) as unknown as Citation[]),
        proposals: body.at(-1)!.recommendations.map(({ action }) => ({
          operation: action!.operation,
          input: action!.input,
        })),
        memory: stored.rows[0]?.memory ?? {},
      }
    },
  }
}
