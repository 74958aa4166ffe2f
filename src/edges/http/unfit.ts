import { isRecord } from '#kernel/decimal-fields.ts'
import type { Issue } from '#kernel/fault.ts'

/** Text that the database cannot hold: a zero byte, or half of a character that takes two. */
const isUnfit = (text: string): boolean => text.includes('\u0000') || !text.isWellFormed()

/** Each value, keys included, that would fail only where it is stored: such text, and numbers beyond a double. */
export function unfitValues(part: string, value: unknown): Issue[] {
  const issues: Issue[] = []
  const look = (item: unknown, loc: Issue['loc']): void => {
    if (typeof item === 'string' && isUnfit(item)) issues.push(unfitText(loc))
    else if (typeof item === 'number' && !Number.isFinite(item)) issues.push(notFinite(loc))
    else if (Array.isArray(item)) {
      for (const [index, inner] of item.entries()) look(inner, [...loc, index])
    } else if (isRecord(item)) {
      for (const [name, field] of Object.entries(item)) {
        if (isUnfit(name)) issues.push(unfitText(loc))
        look(field, [...loc, name])
      }
    }
  }
  look(value, [part])
  return issues
}

const unfitText = (loc: Issue['loc']): Issue => ({
  loc,
  msg: 'Input should be a valid string without the character U+0000',
  type: 'string_unicode',
})
const notFinite = (loc: Issue['loc']): Issue => ({
  loc,
  msg: 'Input should be a finite number',
  type: 'finite_number',
})
