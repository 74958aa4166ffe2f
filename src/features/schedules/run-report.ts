import { cutText } from './cut-text.ts'
import type { RunEnd, StartedTask } from './run-outcome.ts'

/** The content of a run's report file. The chat's text is quoted as it was said; all else is from the record. */

export type Reported = {
  title: string
  number: number
  version: number
  slot: Date | null
  query: string
  answer: string | null
  startedAt: Date | null
  endedAt: Date
  creditsUsed: number
  started: readonly StartedTask[]
  end: RunEnd
}

const line = (text: string): string => text.replace(/[\s\u0085]+/g, ' ').trim()
const lineBreak = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/
const quoted = (text: string): string =>
  text
    .split(lineBreak)
    .map((each) => `> ${each}`.trimEnd())
    .join('\n')

export function reportText(run: Reported): string {
  const { slot, startedAt, endedAt, end } = run
  const facts = [
    `Run ${run.number} of version ${run.version}`,
    slot ? `Scheduled for ${slot.toISOString()}` : 'Started by its user',
    ...(startedAt ? [`Began at ${startedAt.toISOString()}`] : []),
    `Ended at ${endedAt.toISOString()}: ${end.status}, ${end.outcome}`,
    ...(end.skipReason ? [`Reason: ${end.skipReason}`] : []),
    ...(end.error ? [`Error ${end.error.code}: ${line(end.error.message)}`] : []),
    ...(end.decision ? [`Decision: ${end.decision.action}: ${line(end.decision.reason)}`] : []),
    `Credits: ${run.creditsUsed}`,
  ]
  const tasks = run.started.map(
    ({ task_id, kind, status, outcome }) => `- ${kind} ${task_id}: ${status}, ${outcome ?? 'open'}`,
  )
  const parts = [
    `# ${line(run.title)}`,
    facts.map((fact) => `- ${fact}`).join('\n'),
    `## Query\n\n${quoted(run.query)}`,
    ...(run.answer ? [`## Answer\n\n${quoted(run.answer)}`] : []),
    ...(tasks.length > 0 ? [`## Tasks\n\n${tasks.join('\n')}`] : []),
  ]
  return `${parts.join('\n\n')}\n`
}

const summaryCharacters = 200

/** One line about a run: the beginning of its answer, or why it has none. */
export function summaryOf({ answer, end }: Pick<Reported, 'answer' | 'end'>): string {
  return cutText(
    line(answer ?? end.error?.message ?? end.decision?.text ?? end.decision?.reason ?? end.status),
    summaryCharacters,
  )
}
