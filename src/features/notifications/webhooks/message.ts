import type { StoredEvent } from '#durable/events/event-log.ts'

/** A message is the event as the stream and the list show it, under an id that is the same in every attempt. */
const resetType = 'reset'

export type Message = { id: string; type: string; body: string }

/** Returns the id of a message; a receiver that has seen the id has seen the event. */
export const messageId = (webhookId: string, seq: bigint | string, type: string): string =>
  `msg_${webhookId}_${seq}${type === resetType ? '_reset' : ''}`

export const eventMessage = (
  webhookId: string,
  event: Pick<StoredEvent, 'id' | 'type'>,
  shown: unknown,
): Message => ({
  id: messageId(webhookId, event.id, event.type),
  type: event.type,
  body: JSON.stringify(shown),
})

const noticeOf = (type: string, id: string, data: object, at: Date) =>
  JSON.stringify({ id, type, task_id: null, subject: null, data, created_at: at.toISOString() })

/** Makes the message that stands for events which are no longer stored, as `reset` does in the stream. */
export const resetMessage = (
  webhookId: string,
  { from, to }: { from: bigint; to: bigint },
  at: Date,
): Message => ({
  id: messageId(webhookId, to, resetType),
  type: resetType,
  body: noticeOf(resetType, String(to), { from: String(from), to: String(to) }, at),
})

/** Makes a test message; it has the number 0, which no event of the log has. */
export const testMessage = (webhookId: string, testId: string, at: Date): Message => ({
  id: `msg_${webhookId}_test_${testId}`,
  type: 'webhook.test',
  body: noticeOf('webhook.test', '0', { webhook_id: webhookId }, at),
})
