import type { Caller } from '#kernel/contract/caller.ts'
import type { ScheduleDeps } from './activation.ts'
import type { ScheduleInputOf } from './contract.ts'
import { examples } from './recurrence/schedule-error.ts'
import { intervalSecondsMin } from './schedule-schemas.ts'
import { splitSentence } from './split-sentence.ts'
import { refused } from './version-from-input.ts'
import { nothingCompiled, readingView } from './views.ts'

/** Shows the schedule that a sentence would make; an unknown zone is refused, and unread words are reported. */
export const preview =
  ({ clock, factsOf, orderedBy }: Pick<ScheduleDeps, 'clock' | 'factsOf' | 'orderedBy'>) =>
  async ({ text, timezone }: ScheduleInputOf<'preview'>, { userId }: Caller) => {
    const now = clock.now()
    const sentence = splitSentence(text, {
      now,
      secondsMin: intervalSecondsMin,
      ...(timezone !== undefined && { timezone }),
    })
    const facts = await factsOf(userId)
    if ('calendar' in sentence) {
      const compiled = { ...(await orderedBy(userId, sentence.query)), notes: sentence.notes }
      const shown = readingView({ calendar: sentence.calendar, compiled, facts }, now)
      return { ...shown, query: sentence.query, questions: [], unread: [], examples }
    }
    const { refusal } = sentence
    if (refusal.field === 'timezone') throw refused(refusal)
    const nothing = { calendar: null, compiled: nothingCompiled, facts }
    return {
      ...readingView(nothing, now),
      query: null,
      questions: [refusal.msg],
      unread: refusal.ctx.unread ?? [],
      examples: refusal.ctx.suggestions ?? refusal.ctx.examples,
    }
  }
