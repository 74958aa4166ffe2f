import type { Calendar, Refusal } from './recurrence/calendar-types.ts'
import { type ReadOptions, readSchedule } from './recurrence/read-schedule.ts'
import { examples } from './recurrence/schedule-error.ts'

/** A calendar that was read; `notes` names words that were read in another sense, such as `EST` as America/New_York. */
export type ReadCalendar = { calendar: Calendar; notes: string[] }
/** A sentence without the times at its beginning or end; the rest is the query that each run asks. */
export type Sentence = ReadCalendar & { query: string }

/** No phrase that names times has more words than this, nor more characters. */
const wordsMax = 16
const charactersMax = 200

const lastMark = /[\s,;:-]/
/**
 * Removes spaces and punctuation at both ends. One pattern for both ends would take quadratic time for long runs of
 * punctuation.
 */
function trimmed(words: readonly string[]): string {
  const text = words.join(' ')
  let end = text.length
  while (end > 0 && lastMark.test(text[end - 1] ?? '')) end--
  return text.slice(0, end).replace(/^[\s,;:.!-]+/, '')
}

/** Splits a sentence at the longest phrase that is a schedule, first at its beginning and then at its end. */
export function splitSentence(text: string, options: ReadOptions): Sentence | { refusal: Refusal } {
  const words = text.trim().split(/\s+/)
  let refused: string | undefined
  for (const isFirst of [true, false])
    for (let count = Math.min(wordsMax, words.length - 1); count > 0; count--) {
      const at = isFirst ? count : words.length - count
      const phrase = trimmed(isFirst ? words.slice(0, at) : words.slice(at))
      if (phrase === '' || phrase.length > charactersMax) continue
      const reading = readSchedule(phrase, { ...options, isTrial: true })
      if ('calendar' in reading) {
        const query = trimmed(isFirst ? words.slice(at) : words.slice(0, at))
        if (query !== '') return { ...reading, query }
        continue
      }
      const { type, field } = reading.refusal
      if (field === 'timezone') return reading
      if (type === 'not_understood') continue
      refused ??= phrase
      // Shorter parts of a refused phrase are not tried, because they mean something else. Only an unknown zone may be
      // a word of the query.
      if (type !== 'unknown_zone') break
    }
  return { refusal: refusalOf(refused, options) ?? incomplete(text, options) }
}

/** Returns the refusal of a phrase that is understood, but is no schedule; it helps more than `not_understood`. */
function refusalOf(phrase: string | undefined, options: ReadOptions): Refusal | undefined {
  const reading = phrase === undefined ? undefined : readSchedule(phrase, options)
  return reading && 'refusal' in reading ? reading.refusal : undefined
}

/** Returns the refusal of a sentence that has no times, or nothing but times. */
function incomplete(text: string, options: ReadOptions): Refusal {
  if ('calendar' in readSchedule(text, { ...options, isTrial: true }))
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
