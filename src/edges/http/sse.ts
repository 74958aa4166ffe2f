import type { FastifyReply } from 'fastify'
import type { StreamItem } from '#kernel/contract/operation.ts'
import { openByteStream, type StreamSettings } from './byte-stream.ts'

const reconnectMs = 3_000

const oneLine = (text: string): string => text.replace(/[^\P{Cc}\t]/gu, '')

export function frameOf(item: StreamItem): string {
  if ('comment' in item) return `: ${oneLine(item.comment)}\n\n`
  const id = item.id === undefined ? '' : `id: ${oneLine(item.id)}\n`
  const event = item.event === undefined ? '' : `event: ${oneLine(item.event)}\n`
  return `${id}${event}data: ${JSON.stringify(item.data ?? null)}\n\n`
}

export type EventStream = {
  write(item: StreamItem): Promise<boolean>
  /** Ends the stream and repeats its last event id, so that a client resumes where it was cut off. */
  finish(): void
  ended: Promise<void>
}

/** Streams the events of an operation. A reader that was cut off resumes with its last event id. */
export function openEventStream(reply: FastifyReply, settings: StreamSettings): EventStream {
  reply.header('content-type', 'text/event-stream; charset=utf-8')
  reply.header('cache-control', 'no-cache, no-transform')
  const stream = openByteStream(reply, settings)
  void stream.write(`retry: ${reconnectMs}\n\n`)
  let lastId: string | undefined
  return {
    ended: stream.ended,
    write(item) {
      if (!('comment' in item) && item.id !== undefined) lastId = oneLine(item.id)
      return stream.write(frameOf(item))
    },
    finish: () => stream.finish(lastId === undefined ? undefined : `id: ${lastId}\n\n`),
  }
}
