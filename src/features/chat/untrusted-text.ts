import { isRecord, type Json } from '#kernel/wire/json.ts'

/**
 * This module finds out whether somebody else may have worded a part of a value, so that a model that reads it might
 * follow an instruction in it. Numbers, ids, times and words of the interface are safe, and so are names that the
 * gateway lists.
 */

/** Fields that strangers can fill with words of their choice. */
const worded = new Set([
  'name',
  'symbol',
  'title',
  'label',
  'display_name',
  'description',
  'reason',
  'reasons',
  'text',
  'question',
  'slug',
])
/** Outcomes of tasks are the gateway's words; those of a prediction market are a stranger's. */
const ofTasks = new Set(['executed', 'not_executed', 'partial', 'unknown'])
const isWorded = (field: string, value: string): boolean =>
  worded.has(field) || (field === 'outcome' && !ofTasks.has(value))
const token = /^[\w.:/@+-]{1,100}$/
const count = /^-?[\d.,]{1,80}$/

export function hasForeignText(value: Json, isListed: (text: string) => boolean, field = ''): boolean {
  if (typeof value === 'string') {
    if (value === '' || count.test(value) || isListed(value)) return false
    return isWorded(field, value) || !token.test(value)
  }
  if (Array.isArray(value)) return value.some((each) => hasForeignText(each, isListed, field))
  if (!isRecord(value)) return false
  return Object.entries(value).some(
    ([name, each]) => !token.test(name) || hasForeignText(each as Json, isListed, name),
  )
}
