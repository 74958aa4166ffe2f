import { createParser } from 'eventsource-parser'
import { Fault } from '#kernel/contract/fault.ts'

/** This module reads server-sent events from text that is cut anywhere, with a bound on what one event holds. */

export type ServerEvent = { event: string | undefined; data: string }
export type EventParser = {
  /** The events that end in this text. */
  push(text: string): ServerEvent[]
}

export function createEventParser(charactersMax: number): EventParser {
  let events: ServerEvent[] = []
  const parser = createParser({
    maxBufferSize: charactersMax,
    onEvent: ({ event, data }) => void events.push({ event, data }),
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded')
        throw new Fault(
          'upstream_rejected',
          `An event of the model endpoint exceeds ${charactersMax} characters`,
        )
    },
  })
  return {
    push(text) {
      events = []
      parser.feed(text)
      return events
    },
  }
}
