import { isRecord, type Json } from '#kernel/wire/json.ts'

/** What the gateway says of a call that it has started by itself: the lines to print, nothing where it says nothing. */
export function startedText(output: Json): string {
  const started = isRecord(output) ? output.started : undefined
  if (!isRecord(started) || typeof started.title !== 'string' || typeof started.detail !== 'string') return ''
  return [started.title, ...started.detail.split('\n').map((line) => `- ${line}`)]
    .map((line) => `\n${line}`)
    .join('')
}
