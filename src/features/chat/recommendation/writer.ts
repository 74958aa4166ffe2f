import type { Json } from '#kernel/wire/json.ts'
import type { Lists } from './value-words.ts'

export type Writer = (given: Given) => { title: string; lines: readonly Line[] }
export type Given = {
  lists: Lists
  /** Takes the value of a field, which the writer then prints; undefined if the field is absent or null. */
  take(field: string): Json | undefined
}
export type Line = string | undefined

export const joined = (...parts: readonly Line[]): string =>
  parts.filter((part) => part !== undefined).join(' ')
