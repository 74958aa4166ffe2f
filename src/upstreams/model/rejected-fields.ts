import { isRecord } from '#kernel/json.ts'

/** Optional fields that some models refuse. Each refusal is learned once, and the request is sent again without it. */

const optionalFields = ['max_tokens', 'temperature', 'stream_options'] as const
export type OptionalField = (typeof optionalFields)[number]
export type RejectedFields = ReadonlySet<OptionalField>

/** A value that is too large is no refusal of its field. */
const refusals =
  /unsupported|not support|not permitted|not allowed|deprecated|unrecognized|unknown|max_completion_tokens/i

/** The field that an answer with status 400 or 422 is about; undefined where it is about none of them. */
export function rejectedField(status: number, body: string): OptionalField | undefined {
  if (status !== 400 && status !== 422) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return undefined
  }
  const error = isRecord(parsed) && isRecord(parsed.error) ? parsed.error : {}
  const { param, code, message } = error
  const head = typeof message === 'string' ? message.slice(0, 300) : ''
  if (!refusals.test(`${String(code)} ${head}`)) return undefined
  const byParam = optionalFields.find((name) => name === param)
  if (byParam !== undefined) return byParam
  return optionalFields.find((name) => new RegExp(`(^|[^\\w])${name}($|[^\\w])`).test(head))
}
