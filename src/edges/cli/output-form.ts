import type { Form } from './answer-text.ts'
import type { Options } from './operation-input.ts'

export const formOf = ({ json, jsonl, wide }: Options): Form =>
  jsonl === true ? 'jsonl' : json !== undefined ? 'json' : wide === true ? 'wide' : 'table'

/** The form of errors that come before the options are read. */
export const formOfWords = (words: readonly string[]): Form =>
  formOf({
    ...(words.includes('--jsonl') && { jsonl: true }),
    ...(words.some((word) => /^--json(?:=|$)/.test(word)) && { json: true }),
  })
