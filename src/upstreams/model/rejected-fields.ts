import { isRecord, parseJson } from '#kernel/wire/json.ts'

/** Optional fields that some models refuse. Each refusal is learned once, and the request is sent without the field. */

const optionalFields = ['max_tokens', 'temperature', 'stream_options', 'tool_choice'] as const
/** A `prefix` is an answer of the model at the end of the conversation, for it to continue. */
export type OptionalField = (typeof optionalFields)[number] | 'prefix'
export type RejectedFields = ReadonlySet<OptionalField>

const refusals =
  /unsupported|not support|n't support|not permitted|not allowed|is allowed|deprecated|unrecognized|unknown|extra_forbidden|max_completion_tokens/i
/** Marks an error about a value that is too large. Such an error does not mean that the model refuses the field. */
const tooLarge = /too large|context length|context window/i
const refusesPrefix = /prefill|end with a user|last role user/i
const headCharacters = 300

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Returns the words of an error in the forms of OpenAI, Anthropic, their relays, and servers that validate bodies. */
function wordsOf(parsed: Record<string, unknown>): { param: unknown; head: string } {
  const error = isRecord(parsed.error) ? parsed.error : parsed
  const { param, code, message, metadata } = error
  const detail = isRecord(message) ? message.detail : error.detail
  const issues = (Array.isArray(detail) ? detail : []).filter(isRecord).map(({ type, loc, msg }) => {
    const path = Array.isArray(loc) ? loc.join('.') : ''
    return `${textIn(type)} ${path} ${textIn(msg)}`
  })
  const raw = isRecord(metadata) ? metadata.raw : undefined
  const head = [message, parsed.error, detail, raw, ...issues]
    .map((each) => textIn(each).slice(0, headCharacters))
    .join(' ')
  return { param, head: `${String(code)} ${head}` }
}

/** Returns the optional field that a 400 or 422 is about, if any. */
export function rejectedField(status: number, body: string): OptionalField | undefined {
  if (status !== 400 && status !== 422) return undefined
  const parsed = parseJson(body)
  if (!isRecord(parsed)) return undefined
  const { param, head } = wordsOf(parsed)
  if (refusesPrefix.test(head)) return 'prefix'
  if (!refusals.test(head) || tooLarge.test(head)) return undefined
  const byParam = optionalFields.find((name) => name === param)
  if (byParam !== undefined) return byParam
  return optionalFields.find((name) => new RegExp(`(^|[^\\w])${name}($|[^\\w])`).test(head))
}
