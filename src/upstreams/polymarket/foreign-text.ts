import { parseJson } from '#kernel/wire/json.ts'

/** Words of the venue, bounded before they reach rows, events and people. */

const textMax = 20_000
const unstorable = /[^\P{Cc}\n\t]/gu
/** They turn the direction of what follows, so that a text reads otherwise than it is. */
const turning = /\p{Bidi_Control}/gu

/** Parses a reply whose texts are cut to a length that no row refuses, without characters that none takes. */
export const parseReply = (body: string): unknown => {
  const json = parseJson(body)
  return json === undefined ? undefined : bounded(json)
}

/** Changes the parsed reply in place, without recursion: a reply may be nested as deep as it is long. */
function bounded(json: unknown): unknown {
  const whole = { json }
  const open: Record<string, unknown>[] = [whole]
  for (let each = open.pop(); each; each = open.pop())
    for (const [key, value] of Object.entries(each)) {
      if (typeof value === 'string') each[key] = boundedText(value)
      else if (typeof value === 'object' && value !== null) open.push(value as Record<string, unknown>)
    }
  return whole.json
}

const boundedText = (text: string): string =>
  text.slice(0, textMax).replace(unstorable, '').replace(turning, '').toWellFormed()

/** Makes one line of at most so many characters, without those that change how it is displayed. */
export const lineOf = (text: string, max: number): string =>
  text
    .slice(0, max * 2)
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, max)
    .toWellFormed()

export const messageMax = 300
export const titleMax = 500
export const labelMax = 100

const hash = /^0x[0-9a-f]{64}$/i
const tradeId = /^[\w-]{1,80}$/
const idsMax = 200

/** At most so many ids as a reply names where it is about one order. */
export const hashesOf = (ids: readonly string[], max = idsMax): string[] =>
  ids.filter((id) => hash.test(id)).slice(0, max)
export const tradeIdsOf = (ids: readonly string[]): string[] =>
  ids.filter((id) => tradeId.test(id)).slice(0, idsMax)

/** Returns the text if it has the form, and null otherwise. */
export const matching = (text: string | null | undefined, form: RegExp): string | null =>
  text !== null && text !== undefined && form.test(text) ? text : null
