import { isRecord, type Json, type JsonObject } from '#kernel/json.ts'
import type { RecommendationText } from './recommendation-text.ts'

/** What a chat has started by itself is said in the words of a recommendation, as a part of the answer of its call. */

export const withStarted = (output: Json, { title, detail }: RecommendationText): Json =>
  isRecord(output) ? { ...(output as JsonObject), started: { title, detail } } : output

/** The lines to print, each begun; nothing where the output has no such words. */
export function startedText(output: Json): string {
  const started = isRecord(output) ? output.started : undefined
  if (!isRecord(started) || typeof started.title !== 'string' || typeof started.detail !== 'string') return ''
  return [started.title, ...started.detail.split('\n').map((line) => `- ${line}`)]
    .map((line) => `\n${line}`)
    .join('')
}
