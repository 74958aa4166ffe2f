import type * as T from 'typebox'

/**
 * Constructors of JSON Schemas with typebox's types. Typebox's own constructors load a type engine: 680 files, a
 * seventh of the startup time and 20 MiB.
 */

export type Static<S extends T.TSchema> = T.Static<S>
export type TSchema = T.TSchema
export type TSchemaOptions = T.TSchemaOptions
export type TObject = T.TObject
export type TObjectOptions = T.TObjectOptions

type Schema = Record<string, unknown>
type Options = Record<string, unknown> | undefined

/**
 * The mark of an optional property. As in typebox the mark is not enumerable, so a copy of the schema loses the mark
 * and becomes required.
 */
const optionalMark = '~optional'
const isOptional = (schema: Schema): boolean => schema[optionalMark] === true

/** The copy has the other marks of the schema, too. */
const optional = (schema: Schema): Schema =>
  Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(schema), [optionalMark]: { value: true } },
  )

function object(properties: Record<string, Schema>, options: Options): Schema {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]!))
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
}

const partial = ({ properties }: { properties: Record<string, Schema> }, options: Options): Schema =>
  object(
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, optional(schema)])),
    options,
  )

const ofType =
  (type: string) =>
  (options: Options): Schema => ({ type, ...options })

const constructors = {
  Array: (items: Schema, options: Options): Schema => ({ type: 'array', items, ...options }),
  Boolean: ofType('boolean'),
  Integer: ofType('integer'),
  Literal: (value: unknown, options: Options): Schema => ({ type: typeof value, const: value, ...options }),
  Null: ofType('null'),
  Number: ofType('number'),
  Object: object,
  Optional: optional,
  Partial: partial,
  Record: ({ pattern = '^.*$' }: { pattern?: string }, value: Schema, options: Options): Schema => ({
    type: 'object',
    patternProperties: { [pattern]: value },
    ...options,
  }),
  String: ofType('string'),
  Tuple: (items: Schema[], options: Options): Schema => ({
    type: 'array',
    additionalItems: false,
    items,
    minItems: items.length,
    ...options,
  }),
  Union: (anyOf: Schema[], options: Options): Schema => ({ anyOf, ...options }),
  Unsafe: (schema: Schema): Schema => ({ ...schema }),
}
const typed = constructors as unknown as Pick<typeof T, keyof typeof constructors>

const { Integer, Literal, Null, Optional, Partial, Record, Tuple, Union, Unsafe } = typed
const { Array: ArraySchema, Boolean: BooleanSchema, Number: NumberSchema } = typed
const { Object: ObjectSchema, String: StringSchema } = typed

export {
  ArraySchema as Array,
  BooleanSchema as Boolean,
  Integer,
  Literal,
  Null,
  NumberSchema as Number,
  ObjectSchema as Object,
  Optional,
  Partial,
  Record,
  StringSchema as String,
  Tuple,
  Union,
  Unsafe,
}
