import { Fault } from '#kernel/contract/fault.ts'
import type { Emit } from '#kernel/wire/chat-answerer.ts'
import type { EventWriter } from './event-writer.ts'
import type { ChatEvent } from './events.ts'

/** This module passes on what an answerer says, without what an earlier run of the turn has already sent. */

const answerCharactersMax = 200_000
const chunkCharactersMax = 8_000
const planStepsMax = 200

export type Said = { text: () => string; emit: Emit }

export function createEmit(writer: EventWriter, stored: readonly ChatEvent[]): Said {
  const planned = new Set(stored.filter(({ event }) => event === 'planning').map(({ data }) => keyOf(data)))
  const chunks = stored.filter(({ event }) => event === 'chunk').map(({ data }) => String(data.text))
  let text = chunks.join('')
  /** How many characters an earlier run has sent, which this run of the answerer says again. */
  let repeated = text.length
  /** The first half of a surrogate pair whose second half comes with the next piece. */
  let half = ''
  return {
    text: () => text,
    emit: {
      planning(v4_event, data) {
        const key = keyOf({ v4_event, data })
        if (planned.has(key)) return
        if (planned.size >= planStepsMax)
          throw new Fault('conflict', `An answer announces at most ${planStepsMax} steps of a plan`)
        planned.add(key)
        void writer.add('planning', { v4_event, data })
      },
      async chunk(given) {
        const rest = given.slice(Math.min(repeated, given.length))
        repeated -= given.length - rest.length
        const whole = half + rest
        half = isFirstHalf(whole.at(-1)) ? whole.slice(-1) : ''
        const fresh = whole.slice(0, whole.length - half.length)
        if (fresh === '') return
        if (text.length + fresh.length > answerCharactersMax)
          throw new Fault('conflict', `An answer has at most ${answerCharactersMax} characters`)
        text += fresh
        let stored: Promise<void> = Promise.resolve()
        for (const piece of piecesOf(fresh)) stored = writer.add('chunk', { text: piece })
        await stored
      },
    },
  }
}

const isFirstHalf = (unit: string | undefined): boolean => unit !== undefined && /[\uD800-\uDBFF]/.test(unit)

/** Cuts a text into pieces without splitting a character. */
function* piecesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = at + chunkCharactersMax
    const cut = end < text.length && isFirstHalf(text[end - 1]) ? end - 1 : end
    yield text.slice(at, cut)
    at = cut
  }
}

const keyOf = (data: unknown): string => {
  const { v4_event, data: step } = data as { v4_event: string; data: { id: string; text: string } }
  return `${v4_event} ${step.id} ${step.text}`
}
