import { fits } from '#kernel/contract/fits-schema.ts'
import type * as T from '#kernel/contract/schema.ts'

/** Validates each record of a list separately: an invalid record is skipped and reported. */

export type OnSkipped = (list: string, record: unknown) => void

type Fields = Record<string, unknown>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the valid records of a list; a value that is not a list is left to the check of the whole reply. */
export function filterValid(list: unknown, schema: T.TSchema, skip: (record: unknown) => void): unknown {
  if (!Array.isArray(list)) return list
  return list.filter((record: unknown) => {
    if (fits(schema, record)) return true
    skip(record)
    return false
  })
}

export const mapField = (value: unknown, field: string, change: (list: unknown) => unknown): unknown =>
  isFields(value) ? { ...value, [field]: change(value[field]) } : value

export type Skip = (record: unknown) => void
export type RecordFilter = (value: unknown, skip: Skip) => unknown

export const filterList =
  (schema: T.TSchema): RecordFilter =>
  (value, skip) =>
    filterValid(value, schema, skip)
export const filterField =
  (field: string, schema: T.TSchema): RecordFilter =>
  (value, skip) =>
    mapField(value, field, (list) => filterValid(list, schema, skip))

/** Names skipped records in `unread`, because their absence from the list does not mean that they do not exist. */
export const filterNamedField =
  (field: string, schema: T.TSchema, nameOf: (record: unknown) => unknown): RecordFilter =>
  (value, skip) => {
    const unread: (string | null)[] = []
    const read = mapField(value, field, (list) =>
      filterValid(list, schema, (record) => {
        const name = nameOf(record)
        unread.push(typeof name === 'string' ? name : null)
        skip(record)
      }),
    )
    return isFields(read) ? { ...read, unread } : read
  }
export const getField = (value: unknown, field: string): unknown =>
  isFields(value) ? value[field] : undefined

/** Replaces invalid records by null, because the index in the list has a meaning. */
export const blankInvalid = (list: unknown, schema: T.TSchema, skip: Skip): unknown =>
  Array.isArray(list)
    ? list.map((record: unknown) => {
        if (fits(schema, record)) return record
        skip(record)
        return null
      })
    : list

export const filterValues =
  (schema: T.TSchema): RecordFilter =>
  (value, skip) =>
    isFields(value)
      ? Object.fromEntries(
          Object.entries(value).filter(([name, each]) => {
            if (fits(schema, each)) return true
            skip({ [name]: each })
            return false
          }),
        )
      : value
