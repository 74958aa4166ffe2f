import { type Schema, selectSchema } from '#kernel/contract/decimal-fields.ts'
import type { InputLocation, Issue } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { declaredField, outlineOf } from './schema-filter.ts'
import type { IssueList } from './validation-issues.ts'

/** The database cannot store a zero byte, or half of a surrogate pair. */
const isUnstorable = (text: string): boolean => text.includes('\u0000') || !text.isWellFormed()

/**
 * Adds an issue for each value that would fail only when it is stored: a number beyond a double, and text, or a key
 * of an open object, with a zero byte or half of a surrogate pair. A list that is longer than its schema allows is
 * reported and cut, so that its rest is not validated. Returns false if something cannot be stored.
 */
export function checkStorable(
  location: InputLocation,
  schema: Schema,
  value: unknown,
  issues: IssueList,
): boolean {
  let isStorable = true
  const add = (issue: Issue): void => {
    isStorable = false
    issues.add({ ...issue, location })
  }
  const visit = (given: Schema | undefined, item: unknown, path: Issue['path']): void => {
    if (issues.isFull()) return
    if (typeof item === 'string') {
      if (isUnstorable(item)) add(unstorableText(path))
    } else if (typeof item === 'number') {
      if (!Number.isFinite(item)) add(notFinite(path))
    } else if (Array.isArray(item)) visitList(given, item, path)
    else if (isRecord(item)) visitRecord(given, item, path)
  }
  const visitList = (given: Schema | undefined, list: unknown[], path: Issue['path']): void => {
    const arm = given && selectSchema(given, list)
    const max = arm?.maxItems
    if (typeof max === 'number' && list.length > max) {
      issues.add({ ...tooLong(path, max), location })
      list.length = max
    }
    const items = isRecord(arm?.items) ? arm.items : undefined
    for (const [index, inner] of list.entries()) visit(items, inner, [...path, index])
  }
  const visitRecord = (given: Schema | undefined, record: Record<string, unknown>, path: Issue['path']) => {
    const arm = given && selectSchema(given, record)
    const outline = arm && outlineOf(arm)
    for (const name of Object.keys(record)) {
      const field = outline?.isNarrow ? declaredField(outline, name) : true
      if (!field) continue
      if (!outline?.declared.has(name) && isUnstorable(name)) add(unstorableText(path))
      visit(field === true ? undefined : field, record[name], [...path, name])
    }
  }
  visit(schema, value, [])
  return isStorable
}

const unstorableText = (path: Issue['path']): Issue => ({
  path,
  msg: 'Input should be a valid string without the character U+0000',
  type: 'string_unicode',
})
const notFinite = (path: Issue['path']): Issue => ({
  path,
  msg: 'Input should be a finite number',
  type: 'finite_number',
})
const tooLong = (path: Issue['path'], max: number): Issue => ({
  path,
  msg: `List should have at most ${max} ${max === 1 ? 'item' : 'items'}`,
  type: 'too_long',
})
