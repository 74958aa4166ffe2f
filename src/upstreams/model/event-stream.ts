import { Fault } from '#kernel/contract/fault.ts'

/** Reads server-sent events as their standard says, from text that is cut anywhere. */

export type ServerEvent = { event: string | undefined; data: string }
export type EventParser = {
  /** The events that end in this text. */
  push(text: string): ServerEvent[]
}

export function createEventParser(charactersMax: number): EventParser {
  let line = ''
  let data: string[] = []
  let event: string | undefined
  let characters = 0
  /** A line ended in a CR, and an LF that follows belongs to it. */
  let isAfterCr = false

  const count = (added: number) => {
    characters += added
    if (characters > charactersMax)
      throw new Fault(
        'upstream_rejected',
        `An event of the model endpoint exceeds ${charactersMax} characters`,
      )
  }
  const dispatch = (): ServerEvent[] => {
    const found = data.length === 0 ? [] : [{ event, data: data.join('\n') }]
    data = []
    event = undefined
    characters = 0
    return found
  }
  const endLine = (): ServerEvent[] => {
    const ended = line
    line = ''
    if (ended === '') return dispatch()
    const colon = ended.indexOf(':')
    if (colon === 0) {
      // A comment is no part of the event.
      characters -= ended.length
      return []
    }
    const name = colon < 0 ? ended : ended.slice(0, colon)
    const value = colon < 0 ? '' : ended.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') data.push(value)
    else if (name === 'event') event = value
    return []
  }

  return {
    push(text) {
      const events: ServerEvent[] = []
      const ends = /[\r\n]/g
      let from = isAfterCr && text.startsWith('\n') ? 1 : 0
      if (text !== '') isAfterCr = false
      ends.lastIndex = from
      for (let found = ends.exec(text); found; found = ends.exec(text)) {
        count(found.index - from)
        line += text.slice(from, found.index)
        events.push(...endLine())
        from = found.index + 1
        if (found[0] !== '\r') continue
        if (from === text.length) isAfterCr = true
        else if (text[from] === '\n') from += 1
        ends.lastIndex = from
      }
      count(text.length - from)
      line += text.slice(from)
      return events
    },
  }
}
