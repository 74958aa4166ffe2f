import { Fault } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { isRecord, type Json, type JsonObject } from '#kernel/wire/json.ts'
import { fieldWords } from './field-value-words.ts'
import { predictionWriters } from './prediction-writers.ts'
import { tokenWriters } from './token-writers.ts'
import { type Lists, spelled } from './value-words.ts'
import { venueWriters } from './venue-writers.ts'

/**
 * This module writes what a person reads before accepting a call. It uses only the arguments and the lists of the
 * gateway, so that nothing a tool returned can word it. No argument is left out: one without words of its own is
 * printed under its name.
 */

export type RecommendationText = { title: string; detail: string }

/** Nobody reads a longer text to its end, so a call with such a text is not recommended. */
const detailMax = 20_000

export function recommendationText(
  { name, entry }: Pick<Operation, 'name' | 'entry'>,
  input: JsonObject,
  lists: Lists,
): RecommendationText {
  const taken = new Set<string>()
  const words = (tokenWriters[name] ?? venueWriters[name] ?? predictionWriters[name])?.({
    lists,
    take(field) {
      const value = input[field]
      if (value === undefined || value === null) return undefined
      taken.add(field)
      return value
    },
  })
  const lines = [
    ...(words?.lines ?? []).filter((line) => line !== undefined),
    ...Object.entries(input).flatMap(([field, value]) => (taken.has(field) ? [] : [lineOf(field, value)])),
    ...defaultLines(entry, input),
  ]
  const detail = lines.length > 0 ? lines.join('\n') : 'It has no arguments.'
  if (detail.length > detailMax)
    throw new Fault(
      'validation',
      `The arguments are too long to be recommended: at most ${detailMax} characters`,
    )
  return { title: words?.title ?? entry.summary, detail }
}

function lineOf(field: string, value: Json): string {
  const words = value === null ? undefined : fieldWords.get(field)
  return words ? words(value) : `${spelled(field)} ${spelled(value)}`
}

/** These limits on losses are printed even if the call leaves one to its default. */
const boundedLosses = ['slippage_bps', 'max_price_impact_bps']

function defaultLines({ body }: Operation['entry'], input: JsonObject): string[] {
  const properties: unknown = (body as { properties?: unknown } | undefined)?.properties
  return boundedLosses.flatMap((field) => {
    const schema = isRecord(properties) ? properties[field] : undefined
    const value = isRecord(schema) ? (schema.default as Json | undefined) : undefined
    return value === undefined || (input[field] ?? null) !== null
      ? []
      : [`${lineOf(field, value)}, the default`]
  })
}

export const withStarted = (output: Json, { title, detail }: RecommendationText): Json =>
  isRecord(output) ? { ...(output as JsonObject), started: { title, detail } } : output
