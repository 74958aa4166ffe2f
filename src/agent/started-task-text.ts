import { isRecord, type Json } from '#kernel/wire/json.ts'

/**
 * Returns the lines to print about a task that a call has started at once, without a recommendation to accept; returns
 * an empty text if the output shows no such task.
 */
export function startedText(output: Json): string {
  const started = isRecord(output) ? output.started : undefined
  if (!isRecord(started) || typeof started.title !== 'string' || typeof started.detail !== 'string') return ''
  return [started.title, ...started.detail.split('\n').map((line) => `- ${line}`)]
    .map((line) => `\n${line}`)
    .join('')
}
