import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import type { Entry } from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { HeaderPairs } from './headers.ts'

/** An answer that is a bare array has no field for the next page, so a Link header names that page. */

export type Page = { url: string; input: Readonly<Record<string, unknown>>; body: unknown }
export type NextPage = (page: Page) => HeaderPairs

/**
 * Returns a function that makes the Link header of the next page, or undefined if the operation does not return a list
 * in pages. A full page gets the header even if it is the last one.
 */
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
