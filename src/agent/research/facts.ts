import { isRecord, type Json } from '#kernel/wire/json.ts'
import { plainName, type Unit } from '#market/figure-text.ts'
import { historyIn, type ReadHistory } from '#market/market-data.ts'
import { type Claim, cite } from './claim.ts'
import type { Collected } from './collect-results.ts'
import { type ClaimBook, type Computed, createClaimBook } from './report-claims.ts'

export type Facts = {
  asset: string
  book: ClaimBook
  /** Returns a pointer into the answer of a call, or undefined if the call has none. */
  at(call: string, pointer?: string): string | undefined
  output(call: string): unknown
  history(call: string): ReadHistory | undefined
  measured(text: string, unit: Unit, at: string | undefined): Claim | undefined
  derived(text: string, unit: Unit, computed: Computed): Claim | undefined
  missing: readonly Collected[]
  outputs: ReadonlyMap<string, Json>
  newestMs: number
}

export function createFacts(asset: string, collected: readonly Collected[]): Facts {
  const book = createClaimBook()
  const sources = new Map<string, string>()
  const outputs = new Map<string, Json>()
  const byCall = new Map<string, Json>()
  for (const { id, name, input, result } of collected) {
    if (!result.ok) continue
    const source = book.source(name, input, { output: result.output, fetchedAt: result.fetchedAt })
    sources.set(id, source)
    outputs.set(source, result.output)
    byCall.set(id, result.output)
  }
  return {
    asset: plainName(asset),
    book,
    at(call, pointer) {
      const source = sources.get(call)
      return source === undefined || pointer === undefined ? source : `${source}#${pointer}`
    },
    output: (call) => byCall.get(call),
    history: (call) => historyIn(byCall.get(call)),
    measured: (text, unit, at) => (at === undefined ? undefined : book.measured(text, unit, at)),
    derived: book.derived,
    missing: collected.filter(({ result }) => !result.ok),
    outputs,
    newestMs: Math.max(0, ...collected.map(({ result }) => result.fetchedAt.getTime())),
  }
}

/** Returns the pointer to the first row of a list in which a field has a value; undefined if no row has it. */
export function rowPointer(
  output: unknown,
  { list, field, value }: { list: string; field: string; value: string },
): string | undefined {
  const rows = isRecord(output) ? output[list] : undefined
  if (!Array.isArray(rows)) return undefined
  const at = rows.findIndex(
    (row) => isRecord(row) && String(row[field]).toUpperCase() === value.toUpperCase(),
  )
  return at < 0 ? undefined : `/${list}/${at}`
}

export type Part = Claim | string | undefined

/** Writes a sentence with its claims cited; returns undefined if one of them is unknown. */
export function say(texts: TemplateStringsArray, ...parts: readonly Part[]): string | undefined {
  if (parts.some((part) => part === undefined)) return undefined
  return texts.reduce((sentence, text, at) => {
    const part = parts[at - 1]
    return `${sentence}${typeof part === 'object' ? cite(part) : (part ?? '')}${text}`
  })
}

export const cellOf = (claim: Claim | undefined): string => (claim ? cite(claim) : 'unknown')

export const known = <T>(values: readonly (T | undefined)[]): T[] =>
  values.filter((value): value is T => value !== undefined)
