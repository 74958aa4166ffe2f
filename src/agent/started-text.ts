import { isRecord, type Json } from '#kernel/wire/json.ts'

/** Returns the lines to print about a call that the gateway has started by itself; the text may be empty. */
export function startedText(output: Json): string {
  const started = isRecord(output) ? output.started : undefined
  if (!isRecord(started) || typeof started.title !== 'string' || typeof started.detail !== 'string') return ''
  return [started.title, ...started.detail.split('\n').map((line) => `- ${line}`)]
    .map((line) => `\n${line}`)
    .join('')
}
