import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import type { Entry } from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { HeaderPairs } from './headers.ts'

/** A bare array has no field that could say that there is more, so a Link header says it. */

export type Page = { url: string; input: Readonly<Record<string, unknown>>; body: unknown }
export type NextPage = (page: Page) => HeaderPairs

/** Returns how to link the next page; undefined if no answer is a list that is cut. A full page may be the last. */
export function nextPageOf(entry: Entry): NextPage | undefined {
  const fields = entry.query && plainSchema(entry.query).properties
  if (entry.kind !== 'read' || plainSchema(entry.output).type !== 'array') return undefined
  if (!isRecord(fields) || !fields.limit) return undefined
  const { pageAfter } = entry
  return ({ url, input, body }) => {
    if (!Array.isArray(body) || body.length === 0 || body.length !== input.limit) return []
    const next = new URL(url, 'http://path')
    if (pageAfter === undefined) next.searchParams.set('skip', String(Number(input.skip) + body.length))
    else next.searchParams.set('after', String(body.at(-1)[pageAfter]))
    return ['link', `<${next.pathname}${next.search}>; rel="next"`]
  }
}
