import type * as T from 'typebox'
import { Compile } from 'typebox/compile'

/** Lists of the venue, of which each record is judged by itself: one that is not understood is left out and reported. */

/** Compiling takes its time, so that it is done with the first answer of a kind. */
const compiled = new Map<T.TSchema, { Check(value: unknown): boolean }>()

export function fits<S extends T.TSchema>(schema: S, value: unknown): value is T.Static<S> {
  let check = compiled.get(schema)
  if (!check) {
    check = Compile(schema)
    compiled.set(schema, check)
  }
  return check.Check(value)
}

/** Hears of each record that is left out because it is not understood; `list` says where it stood. */
export type OnSkipped = (list: string, record: unknown) => void

type Fields = Record<string, unknown>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The records of a list that are understood; a list of another shape is left to the check of the whole. */
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

/** Names what is left out in `unread`: what such a list does not show may be there all the same. */
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

/** A place in the list means something here, so that it stays and is empty. */
export const blankInvalid = (list: unknown, schema: T.TSchema, skip: Skip): unknown =>
  Array.isArray(list)
    ? list.map((record: unknown) => {
        if (fits(schema, record)) return record
        skip(record)
        return null
      })
    : list

/** A record whose values are judged one by one. */
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

/** Undefined where the body is no JSON. */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
