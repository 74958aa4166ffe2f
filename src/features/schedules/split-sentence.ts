import type { Calendar, Refusal } from './recurrence/calendar.ts'
import { type ReadOptions, readSchedule } from './recurrence/read-schedule.ts'
import { examples } from './recurrence/schedule-error.ts'

/** A calendar that was read; `notes` names words that were read in another sense than their letters. */
export type ReadCalendar = { calendar: Calendar; notes: string[] }
/** A sentence without the times at its beginning or end; the rest is the query that each run asks. */
export type Sentence = ReadCalendar & { query: string }

/** No phrase that names times has more words than this. */
const wordsMax = 16
const marks = /^[\s,;:.!-]+|[\s,;:-]+$/g

/** Splits a sentence at the longest phrase that is a schedule, first at its beginning and then at its end. */
export function splitSentence(text: string, options: ReadOptions): Sentence | { refusal: Refusal } {
  const words = text.trim().split(/\s+/)
  let refusal: Refusal | undefined
  for (const isFirst of [true, false])
    for (let count = Math.min(wordsMax, words.length - 1); count > 0; count--) {
      const at = isFirst ? count : words.length - count
      const [head, tail] = [words.slice(0, at), words.slice(at)].map((part) =>
        part.join(' ').replace(marks, ''),
      )
      const [phrase = '', query = ''] = isFirst ? [head, tail] : [tail, head]
      if (phrase === '' || query === '') continue
      const reading = readSchedule(phrase, options)
      if ('calendar' in reading) return { ...reading, query }
      // The refusal of a phrase that is understood, but is no schedule, is more useful than `not_understood`.
      if (reading.refusal.type !== 'not_understood') refusal ??= reading.refusal
    }
  return { refusal: refusal ?? incomplete(text, options) }
}

/** Returns the refusal of a sentence that has no times, or nothing but times. */
function incomplete(text: string, options: ReadOptions): Refusal {
  if ('calendar' in readSchedule(text, options))
    return {
      field: 'query',
      type: 'not_understood',
      msg: 'The sentence says when, and not what to ask',
      ctx: { examples, unread: [] },
    }
  return {
    field: 'schedule',
    type: 'not_understood',
    msg: 'The sentence does not say when: give `schedule`, or begin or end it with the times',
    ctx: { examples, unread: [text] },
  }
}
