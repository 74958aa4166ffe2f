import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as typebox from 'typebox'
import * as ours from './schema.ts'

type Constructors = Pick<typeof typebox, keyof typeof ours>

const samples = (T: Constructors): Record<string, object> => {
  const fields = { a: T.Optional(T.String()), b: T.Integer({ minimum: 1 }) }
  return {
    array: T.Array(T.String(), { maxItems: 2 }),
    boolean: T.Boolean({ default: false }),
    integer: T.Integer({ minimum: 1, maximum: 5 }),
    'literal text': T.Literal('a', { description: 'd' }),
    'literal number': T.Literal(1),
    'literal boolean': T.Literal(true),
    null: T.Null(),
    number: T.Number({ exclusiveMinimum: 0 }),
    object: T.Object(fields, { $id: 'Sample', additionalProperties: false }),
    'object without a required field': T.Object({ a: T.Optional(T.Unsafe<string>({ enum: ['x'] })) }),
    'empty object': T.Object({}),
    'copy of an optional schema': T.Object({ a: { ...T.Optional(T.String()) } as typebox.TString }),
    'optional twice': T.Object({ a: T.Optional(T.Optional(T.String())) }),
    partial: T.Partial(T.Object(fields, { $id: 'Sample' })),
    'fields of a partial': T.Object({ ...T.Partial(T.Object(fields)).properties, c: T.Null() }),
    record: T.Record(T.String(), T.Number()),
    'record with a pattern': T.Record(T.String({ pattern: '^a$' }), T.Number(), { minProperties: 1 }),
    string: T.String({ format: 'date-time', minLength: 1 }),
    tuple: T.Tuple([T.String(), T.Number()]),
    union: T.Union([T.Literal('a'), T.Null()], { description: 'd' }),
    unsafe: T.Unsafe<string>({ type: ['string', 'number'], $id: 'Either' }),
  }
}

const theirs = samples(typebox)
for (const [name, schema] of Object.entries(samples(ours)))
  test(`the schema is that of typebox: ${name}`, () => {
    assert.equal(JSON.stringify(schema), JSON.stringify(theirs[name]))
  })
