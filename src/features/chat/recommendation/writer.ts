import type { Json } from '#kernel/wire/json.ts'
import type { Lists } from './value-words.ts'

export type Writer = (given: Given) => { title: string; lines: readonly Line[] }
export type Given = {
  lists: Lists
  /**
   * Returns the value of a field, and marks the field as printed by this writer. Undefined if the field is absent or
   * null.
   */
  take(field: string): Json | undefined
}
export type Line = string | undefined

export const joined = (...parts: readonly Line[]): string =>
  parts.filter((part) => part !== undefined).join(' ')
