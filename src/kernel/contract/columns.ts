import type * as T from './schema.ts'

/** As the mark of an optional property, this one is not enumerable: validation and documents do not see it. */
const columnsMark = '~columns'

/** The name of a field, the path of a field within an object, or two fields of which the second stands in. */
type Column<Item> =
  | (keyof Item & string)
  | `${keyof Item & string}.${string}`
  | `${keyof Item & string}|${keyof Item & string}`

/**
 * Declares the fields of an object that a table shows, the most important ones first: a narrow screen leaves out the last
 * ones. An empty list declares that a person reads such objects only on request.
 */
export const setColumns = <S extends T.TSchema>(
  schema: S,
  columns: readonly Column<NonNullable<T.Static<S>>>[],
): S => Object.defineProperty(schema, columnsMark, { value: columns })

export const columnsOf = (schema: object): readonly string[] | undefined =>
  (schema as { [columnsMark]?: readonly string[] })[columnsMark]
