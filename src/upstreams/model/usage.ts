import { isRecord } from '#kernel/wire/json.ts'
import type { ModelEvent } from './turn.ts'

type Usage = Extract<ModelEvent, { type: 'usage' }>

const tokensMax = 1_000_000_000

/** Returns the sum of the named counts, or undefined if the first one is absent or not a count. */
export function countOf(
  fields: unknown,
  [first, ...others]: readonly [string, ...string[]],
): number | undefined {
  if (!isRecord(fields)) return undefined
  const isCount = (value: unknown): value is number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= tokensMax
  const count = fields[first]
  if (!isCount(count)) return undefined
  return others.reduce((sum, name) => sum + (isCount(fields[name]) ? fields[name] : 0), count)
}

/** Returns the usage event of a turn: a single missing count is 0, and without both counts there is no event. */
export const usageEvents = (inputTokens: number | undefined, outputTokens: number | undefined): Usage[] =>
  inputTokens === undefined && outputTokens === undefined
    ? []
    : [{ type: 'usage', inputTokens: inputTokens ?? 0, outputTokens: outputTokens ?? 0 }]
