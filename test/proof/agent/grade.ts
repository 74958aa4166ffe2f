import { changes } from '#grammar/operation-registry.ts'
import type { Understanding } from '#grammar/understanding.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { type Row, registry } from './corpus.ts'

/** How an understanding compares with what a row expects. */
export type Grade = {
  isIntent: boolean
  areSlots: boolean
  areOperations: boolean
  /** It asks although nothing is open. */
  isNeedlessQuestion: boolean
  /** Calls that change something and that the row does not ask for. */
  wrongMutations: string[]
  found: string
}

type Meaning = { intent: string; slots: Record<string, string> }

function meaningsOf({ intents, ask, refusal }: Understanding, expectsAsk: { ask: boolean }): Meaning[] {
  if (expectsAsk.ask && ask) return [{ intent: ask.intent, slots: ask.slots }]
  if (intents.length > 0) return intents.map(({ name, slots }) => ({ intent: name, slots }))
  if (refusal) return [{ intent: refusal.intent, slots: {} }]
  return ask
    ? [{ intent: `a question about ${ask.slot}`, slots: ask.slots }]
    : [{ intent: 'none', slots: {} }]
}

export const mutationsOf = ({ intents }: Understanding): string[] =>
  intents.flatMap(({ steps, slots }) =>
    steps
      .filter((step) => changes(step, registry))
      .map(({ operation }) => `${operation} ${canonicalJson(slots)}`),
  )

export function grade(row: Row, understanding: Understanding): Grade {
  const wanted: Meaning[] = [{ intent: row.intent, slots: row.slots }, ...(row.then ?? [])]
  const found = meaningsOf(understanding, { ask: row.ask !== undefined })
  const isIntent =
    canonicalJson(wanted.map(({ intent }) => intent)) === canonicalJson(found.map(({ intent }) => intent))
  const areSlots =
    isIntent &&
    wanted.every(({ slots }, at) => canonicalJson(slots) === canonicalJson(found[at]?.slots ?? {}))
  const operations = new Set(
    understanding.intents.flatMap(({ steps }) => steps.map(({ operation }) => operation)),
  )
  const areOperations =
    row.ask === undefined
      ? canonicalJson([...operations].sort()) === canonicalJson([...row.operations].sort())
      : understanding.ask?.slot === row.ask
  const mayMove = row.mood === 'do' && row.ask === undefined && areSlots
  return {
    isIntent,
    areSlots,
    areOperations,
    isNeedlessQuestion: row.ask === undefined && understanding.ask !== null,
    wrongMutations: mayMove ? [] : mutationsOf(understanding),
    found: canonicalJson(found),
  }
}

export const share = (grades: readonly Grade[], holds: (grade: Grade) => boolean): number =>
  grades.length === 0 ? 1 : grades.filter(holds).length / grades.length
