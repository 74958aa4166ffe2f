import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { ScheduleInputOf } from './contract.ts'
import { refused } from './plan.ts'
import { examples } from './recurrence/schedule-error.ts'
import type { ScheduleDeps } from './schedule-deps.ts'
import { intervalSecondsMin } from './schedule-schemas.ts'
import type { UserFacts } from './setup-checklist.ts'
import { splitSentence } from './split-sentence.ts'
import { ordersOf, type StrategyTerms, strategyExamples, termsOf } from './strategy-terms.ts'
import { newPlan } from './version-from-input.ts'
import { nothingCompiled, readingView } from './views.ts'

type PreviewDeps = Pick<ScheduleDeps, 'clock' | 'factsOf' | 'orderedBy' | 'strategies' | 'assetNames'>
type PreviewInput = ScheduleInputOf<'preview'>

const promptReading = { type: 'prompt', config: null, guards: {}, budgetUsd: null } as const

/** Returns the function that shows the schedule of a sentence; an unknown zone is refused, and unread words are reported. */
export const createPreview =
  (deps: PreviewDeps) =>
  async ({ text, timezone }: PreviewInput, { userId }: Caller) => {
    const now = deps.clock.now()
    const facts = await deps.factsOf(userId)
    const input = { query: text, ...(timezone !== undefined && { timezone }) }
    const read = await termsOf(deps, input, { now }).then((terms) => ({ terms }), unreadOf)
    if ('unread' in read) {
      const reading = { ...promptReading, calendar: null, compiled: nothingCompiled, facts }
      const { msg, unread } = read
      return {
        ...readingView(reading, now),
        query: null,
        questions: [msg],
        unread,
        examples: [...strategyExamples],
      }
    }
    return read.terms
      ? strategyPreview(input, { now, terms: read.terms, facts })
      : promptPreview(deps, { text, timezone, userId, now, facts })
  }

/** Returns what was not understood of a sentence that begins like a strategy. */
function unreadOf(error: unknown): { msg: string; unread: string[] } {
  const issue = error instanceof Fault && error.code === 'validation' ? error.issues[0] : undefined
  if (!issue || issue.path[0] === 'timezone') throw error
  const unread = issue.ctx?.unread
  return { msg: issue.msg, unread: Array.isArray(unread) ? unread.map(String) : [] }
}

type StrategyReading = { now: Date; terms: StrategyTerms; facts: UserFacts }

function strategyPreview(
  input: { query: string; timezone?: string },
  { now, terms, facts }: StrategyReading,
) {
  const plan = newPlan(input, { now, terms })
  const { type, calendar, config, guards, budgetUsd } = plan
  const compiled = { ...ordersOf(terms, plan), notes: plan.notes }
  const shown = readingView({ type, calendar, compiled, config, guards, budgetUsd, facts }, now)
  return { ...shown, query: plan.query, questions: [], unread: [], examples: [...strategyExamples] }
}

type Asked = { text: string; timezone: string | undefined; userId: string; now: Date; facts: UserFacts }

async function promptPreview({ orderedBy }: PreviewDeps, { text, timezone, userId, now, facts }: Asked) {
  const sentence = splitSentence(text, {
    now,
    secondsMin: intervalSecondsMin,
    ...(timezone !== undefined && { timezone }),
  })
  if ('calendar' in sentence) {
    const compiled = { ...(await orderedBy(userId, sentence.query)), notes: sentence.notes }
    const shown = readingView({ ...promptReading, calendar: sentence.calendar, compiled, facts }, now)
    return { ...shown, query: sentence.query, questions: [], unread: [], examples }
  }
  const { refusal } = sentence
  if (refusal.field === 'timezone') throw refused(refusal)
  const nothing = { ...promptReading, calendar: null, compiled: nothingCompiled, facts }
  return {
    ...readingView(nothing, now),
    query: null,
    questions: [refusal.msg],
    unread: refusal.ctx.unread ?? [],
    examples: refusal.ctx.suggestions ?? refusal.ctx.examples,
  }
}
