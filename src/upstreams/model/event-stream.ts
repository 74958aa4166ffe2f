import { createParser } from 'eventsource-parser'
import { Fault } from '#kernel/contract/fault.ts'

/** Reads server-sent events from text that is cut anywhere, with a limit on the size of one event. */

export type ServerEvent = { event: string | undefined; data: string }
export type EventParser = {
  /** Takes the next piece of text, and returns the events that end in it. */
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
