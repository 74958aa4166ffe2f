import type { JsonObject } from '#kernel/wire/json.ts'
import type { Advice } from './advice.ts'
import type { ScheduleView } from './schedule-schemas.ts'
import { type JudgedStrategy, strategyAdvice } from './strategy-advice.ts'

/** What to change about a schedule, as its newest runs show it. */

export type JudgedRun = {
  id: string
  number: number
  status: string
  skip_reason: string | null
  error: string | null
  rating: number | null
}
/** A recommendation of a chat that still waits for its user. */
export type OpenRecommendation = {
  recommendation_id: string
  chat_id: string
  title: string
  detail: string
  operation: string
  input: JsonObject
  expires_at: Date
}
export type JudgedSchedule = {
  view: Pick<ScheduleView, 'schedule_id' | 'version' | 'setup_checklist'>
  /** The latest runs of the schedule, the newest first. */
  runs: readonly JudgedRun[]
  open: readonly OpenRecommendation[]
  /** Left out for a question or an order in words. */
  strategy?: JudgedStrategy
}

const adviceMax = 5
/** A failure counts from this number of times on, because a single failure may be an accident. */
const repeatedMin = 2
const lowRating = 2

const evidenceOf = (runs: readonly JudgedRun[]): string[] =>
  runs.map(({ id, number, error, skip_reason }) =>
    [`run ${number} (${id})`, error ?? skip_reason].filter((part) => part !== null).join(': '),
  )

function failures({ runs }: JudgedSchedule): Advice[] {
  const failed = runs.filter(({ status }) => status === 'failed')
  if (failed.length < repeatedMin) return []
  return [
    {
      subject: 'failures',
      priority: 'now',
      category: 'execution',
      title: 'Runs fail again and again',
      why: `${failed.length} of the last ${runs.length} runs failed.`,
      steps: ['Read the error of a run by `schedules_execution`', 'Change the query by `schedules_update`'],
      evidence: evidenceOf(failed),
    },
  ]
}

type SkipAdvice = Pick<Advice, 'category' | 'title' | 'steps' | 'priority'>
const skipAdvice: Readonly<Record<string, SkipAdvice>> = {
  no_credits: {
    priority: 'now',
    category: 'config',
    title: 'Credits were missing',
    steps: [
      'Buy a pack by `credits_recharge`, or a plan by `subscriptions_checkout`',
      'Let it run less often by `schedules_update`',
    ],
  },
  overlap: {
    priority: 'soon',
    category: 'config',
    title: 'A run was still under way at the next time',
    steps: ['Let it run less often by `schedules_update`', 'Ask for less in one query'],
  },
  missed: {
    priority: 'later',
    category: 'config',
    title: 'Times were missed',
    steps: ['Raise `catch_up_seconds` by `schedules_update`, so that a late run is made up for'],
  },
  budget: {
    priority: 'now',
    category: 'config',
    title: 'Its budget did not cover what it had decided',
    steps: ['Raise `budget_usd` by `schedules_update`, or let it end'],
  },
  insufficient_balance: {
    priority: 'now',
    category: 'config',
    title: 'The balance did not cover what it had decided',
    steps: ['Fund the account', 'Let it trade for less by `schedules_update`'],
  },
  foreign_position: {
    priority: 'soon',
    category: 'risk',
    title: 'A position that it has not opened kept it from entering',
    steps: ['Close that position by `perp_close`, or trade another market by `schedules_update`'],
  },
  approval_expired: {
    priority: 'now',
    category: 'config',
    title: 'The approval of a person has expired',
    steps: ['Ask for another one by `schedules_activate`'],
  },
  frozen: {
    priority: 'now',
    category: 'risk',
    title: 'The kill switch, or money on hold, kept runs from starting',
    steps: [
      'See by `policy_show` whether the switch is set, and who has set it',
      'Pause the schedule by `schedules_pause` until it is lifted',
    ],
  },
}

function skips({ runs }: JudgedSchedule): Advice[] {
  return Object.entries(skipAdvice).flatMap(([reason, advice]) => {
    const skipped = runs.filter(({ skip_reason }) => skip_reason === reason)
    if (skipped.length === 0) return []
    const why = `${skipped.length} of the last ${runs.length} times were skipped.`
    return [{ ...advice, subject: `skipped ${reason}`, why, evidence: evidenceOf(skipped) }]
  })
}

function ratings({ runs }: JudgedSchedule): Advice[] {
  const low = runs.filter(({ rating }) => rating !== null && rating <= lowRating)
  if (low.length < repeatedMin) return []
  return [
    {
      subject: 'ratings',
      priority: 'soon',
      category: 'logic',
      title: 'You did not like what its runs said',
      why: `You have rated ${low.length} of the last ${runs.length} runs with ${lowRating} or less.`,
      steps: ['Say in the query what an answer should have, by `schedules_update`', 'Try another `agent`'],
      evidence: evidenceOf(low),
    },
  ]
}

function limits({ view: { setup_checklist, version } }: JudgedSchedule): Advice[] {
  const item = setup_checklist.find(({ key, done }) => key === 'orders_within_limit' && !done)
  if (!item) return []
  return [
    {
      // The subject names the version, because another version orders something else and deserves the advice again.
      subject: `limit of version ${version}`,
      priority: 'soon',
      category: 'config',
      title: 'Its runs only recommend what the query orders',
      why: '`chat_per_day_usd` of the policy is 0, so no chat starts a trade by itself.',
      steps: [item.how ?? item.label],
      evidence: ['`policy_show`: `chat_per_day_usd` is 0'],
    },
  ]
}

const waiting = ({ open }: JudgedSchedule): Advice[] =>
  open.map(({ recommendation_id, chat_id, title, detail, operation, input, expires_at }) => ({
    subject: `chat ${recommendation_id}`,
    priority: 'now',
    category: 'execution',
    title,
    why: detail,
    steps: [
      `Accept or decline it by \`chat_decide\` with chat_id ${chat_id} and recommendation_id ${recommendation_id}`,
    ],
    evidence: [`chat ${chat_id}`],
    action: { operation, input },
    expiresAt: expires_at,
  }))

const urgency = { now: 0, soon: 1, later: 2 } as const

/** Returns advice on a schedule, the most urgent first, without subjects that the user has removed. */
export function adviceFor(schedule: JudgedSchedule, removed: ReadonlySet<string>): Advice[] {
  const ofRuns = [waiting, failures, skips, limits, ratings].flatMap((rule) => rule(schedule))
  const all = [...ofRuns, ...strategyAdvice(schedule.strategy)]
  const wanted = all.filter(({ subject }) => !removed.has(subject))
  return wanted.toSorted((a, b) => urgency[a.priority] - urgency[b.priority]).slice(0, adviceMax)
}
