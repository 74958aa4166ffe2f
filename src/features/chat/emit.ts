import { Fault } from '#kernel/fault.ts'
import type { Emit } from './engine.ts'
import type { EventWriter } from './event-writer.ts'
import type { ChatEvent } from './events.ts'

/** What an engine says, without what an earlier run of the turn has said already. */

const answerCharactersMax = 200_000
const chunkCharactersMax = 8_000
const planStepsMax = 200

export type Said = { text: () => string; emit: Emit }

export function createEmit(writer: EventWriter, stored: readonly ChatEvent[]): Said {
  const planned = new Set(stored.filter(({ event }) => event === 'planning').map(({ data }) => keyOf(data)))
  const chunks = stored.filter(({ event }) => event === 'chunk').map(({ data }) => String(data.text))
  let text = chunks.join('')
  /** Characters that are sent already and are about to be said again. */
  let repeated = text.length
  return {
    text: () => text,
    emit: {
      planning(v4_event, data) {
        const key = keyOf({ v4_event, data })
        if (planned.has(key)) return
        if (planned.size >= planStepsMax) throw new Fault('conflict', 'The plan has too many steps')
        planned.add(key)
        void writer.add('planning', { v4_event, data })
      },
      async chunk(given) {
        const fresh = given.slice(Math.min(repeated, given.length))
        repeated -= given.length - fresh.length
        if (fresh === '') return
        if (text.length + fresh.length > answerCharactersMax)
          throw new Fault('conflict', `An answer has at most ${answerCharactersMax} characters`)
        text += fresh
        let stored: Promise<void> = Promise.resolve()
        for (let at = 0; at < fresh.length; at += chunkCharactersMax)
          stored = writer.add('chunk', { text: fresh.slice(at, at + chunkCharactersMax) })
        await stored
      },
    },
  }
}

const keyOf = (data: unknown): string => {
  const { v4_event, data: step } = data as { v4_event: string; data: { id: string; text: string } }
  return `${v4_event} ${step.id} ${step.text}`
}
