import type { ErrorObject } from 'ajv/dist/2020.js'
import type { Schema } from '#kernel/contract/decimal-fields.ts'
import { type InputLocation, type Issue, issuesMax } from '#kernel/contract/fault.ts'
import { alternatives, nearest } from '#kernel/contract/nearest-names.ts'
import { isRecord } from '#kernel/wire/json.ts'

type Path = Issue['path']
type IssueText = { type: string; msg: string; below?: string }
type Params = Record<string, unknown>

/** The subject of an error: the keyword's own facts, the value, and the schema of the keyword. */
type Failure = {
  params: Params
  value: unknown
  schema: Schema
  location: InputLocation
  unknownField: UnknownField
  /** True if the field belongs to the input itself and not to an object in the input. */
  isTop: boolean
}
export type UnknownField = (name: string, declared: readonly string[], options: { isTop: boolean }) => string

const isJson = (location: InputLocation): boolean => location === 'body'

const typeWords: Record<string, (location: InputLocation, schema: Schema) => IssueText> = {
  string: () => ({ type: 'string_type', msg: 'Input should be a valid string: text in double quotes' }),
  integer: (location) => ({
    type: 'int_parsing',
    msg: isJson(location)
      ? 'Input should be a valid integer: a whole number without quotes'
      : 'Input should be a valid integer, such as 10',
  }),
  number: () => ({
    type: 'float_type',
    msg: 'Input should be a valid number, such as 12.5 or "12.5"',
  }),
  boolean: (location) => ({
    type: 'bool_parsing',
    msg: `Input should be a valid boolean: true or false${isJson(location) ? ' without quotes' : ''}`,
  }),
  object: (_, { required }) => {
    const names = Array.isArray(required) ? required.map((name) => `\`${name}\``) : []
    const fields = names.length > 0 ? ` with ${names.join(', ')}` : ' in braces'
    return {
      type: 'model_attributes_type',
      msg: `Input should be a valid dictionary: a JSON object${fields}`,
    }
  },
  array: () => ({ type: 'list_type', msg: 'Input should be a valid list: a JSON array in square brackets' }),
  null: () => ({ type: 'none_required', msg: 'Input should be null' }),
}

const count = (n: unknown, unit: string): string => `${n} ${unit}${n === 1 ? '' : 's'}`
const limit =
  (type: string, words: string) =>
  ({ params }: Failure) => ({ type, msg: `Input should be ${words} ${params.limit}` })
const length =
  (type: string, words: string, unit: string, what: string) =>
  ({ params }: Failure) => ({ type, msg: `${what} should have ${words} ${count(params.limit, unit)}` })
const missing = ({ params, schema, value }: Failure) => ({
  type: 'missing',
  msg: missingField(String(params.missingProperty), propertyNames(schema), value),
  below: String(params.missingProperty),
})
const extra = ({ params, schema, unknownField, isTop }: Failure) => {
  const name = String(params.additionalProperty ?? params.unevaluatedProperty)
  return { type: 'extra_forbidden', msg: unknownField(name, propertyNames(schema), { isTop }), below: name }
}

const propertyNames = ({ properties }: Schema): string[] =>
  isRecord(properties) ? Object.keys(properties) : []

/** At most this many undeclared names are compared with a missing one. */
const namesComparedMax = 32

/** Returns the message of a missing field, which says to rename the field if it is present under another name. */
function missingField(name: string, declared: readonly string[], value: unknown): string {
  const given = isRecord(value) ? Object.keys(value) : []
  const unknown = given.filter((each) => !declared.includes(each)).slice(0, namesComparedMax)
  const [meant] = nearest(name, unknown)
  return meant === undefined
    ? `Field required: add \`${name}\``
    : `Field required: rename \`${meant}\` to \`${name}\``
}

/** Returns the message of allowed values as FastAPI words it, `'a', 'b' or 'c'`, with the most similar one. */
function choice(values: readonly unknown[], given: unknown): string {
  const shown = values.map((value) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value)))
  const texts = values.filter((value) => typeof value === 'string')
  const meant = typeof given === 'string' ? nearest(given, texts) : []
  const isOneWord = new Set(meant.map((word) => word.toLowerCase())).size === 1
  const hint = isOneWord ? `; did you mean '${meant[0]}'?` : ''
  return `Input should be ${alternatives(shown)}${hint}`
}

/** A pattern is for machines: readers get the meaning of the field, and an example of it. */
function wrongForm({ description, examples }: Schema): string {
  const example = Array.isArray(examples) ? examples[0] : undefined
  const form = typeof description === 'string' ? `: ${description}` : ''
  return `String has the wrong form${form}${example === undefined ? '' : `, such as '${example}'`}`
}

const formats: Record<string, IssueText> = {
  uuid: {
    type: 'uuid_parsing',
    msg: 'Input should be a valid UUID, such as 0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11',
  },
  'date-time': {
    type: 'value_error',
    msg: 'Input should be a valid time, such as 2026-01-31T12:00:00.000Z',
  },
}

const issueTexts: Record<string, (failure: Failure) => IssueText> = {
  required: missing,
  dependentRequired: missing,
  additionalProperties: extra,
  unevaluatedProperties: extra,
  exclusiveMinimum: limit('greater_than', 'greater than'),
  minimum: limit('greater_than_equal', 'greater than or equal to'),
  exclusiveMaximum: limit('less_than', 'less than'),
  maximum: limit('less_than_equal', 'less than or equal to'),
  minLength: length('string_too_short', 'at least', 'character', 'String'),
  maxLength: length('string_too_long', 'at most', 'character', 'String'),
  minItems: length('too_short', 'at least', 'item', 'List'),
  maxItems: length('too_long', 'at most', 'item', 'List'),
  minProperties: length('too_short', 'at least', 'item', 'Dictionary'),
  maxProperties: length('too_long', 'at most', 'item', 'Dictionary'),
  pattern: ({ schema }) => ({ type: 'string_pattern_mismatch', msg: wrongForm(schema) }),
  multipleOf: ({ params }) => ({
    type: 'multiple_of',
    msg: `Input should be a multiple of ${params.multipleOf}`,
  }),
  enum: ({ params, value }) => ({
    type: 'literal_error',
    msg: choice(params.allowedValues as unknown[], value),
  }),
  const: ({ params, value }) => ({ type: 'literal_error', msg: choice([params.allowedValue], value) }),
  format: ({ params }) =>
    formats[String(params.format)] ?? {
      type: 'value_error',
      msg: `Input should be a valid ${params.format}`,
    },
  type: ({ params, location, schema, value }) => {
    const names = [params.type]
      .flat()
      .join(',')
      .split(',')
      .filter((name) => name !== 'null')
    const isNumber = typeof value === 'number'
    const first = isNumber && names.includes('integer') ? 'integer' : (names[0] ?? '')
    const described = typeWords[first]?.(location, schema) ?? {
      type: 'value_error',
      msg: `Input should be a valid ${first}`,
    }
    // A decimal may be a number or text, and is described as a number.
    const isSeveral = names.length > 1 && first !== 'number' && !isNumber
    return isSeveral ? { ...described, msg: `Input should be a valid ${alternatives(names)}` } : described
  },
}

const wrappers = new Set(['anyOf', 'oneOf', 'if'])
const nullArm = /\/(?:anyOf|oneOf)\/\d+\/type$/

/** A number in a pointer is an index only if the value really is a list. */
function pathOf(pointer: string, root: unknown): Path {
  let value = root
  const path: Path = []
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    path.push(Array.isArray(value) ? Number(name) : name)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
  }
  return path
}

type Judged = { location: InputLocation; root: unknown; unknownField: UnknownField }

/** Adds the errors at one location of the input in FastAPI's words; a union is described by its arms. */
export function addSchemaErrors(
  issues: IssueList,
  errors: readonly ErrorObject[],
  { location, root, unknownField }: Judged,
): void {
  const arms = errors.filter((error) => !wrappers.has(error.keyword) && !isNullArm(error))
  const relevant = arms.length > 0 ? arms : errors
  for (const error of relevant) {
    if (issues.isFull()) return
    const { keyword, instancePath, params, message = 'Value error', data: value } = error
    const literals = keyword === 'const' ? literalsAt(instancePath, relevant) : []
    const schema: Schema = isRecord(error.parentSchema) ? error.parentSchema : {}
    const failure = { params, value, schema, location, unknownField, isTop: instancePath === '' }
    const described: IssueText =
      literals.length > 1
        ? { type: 'literal_error', msg: choice(literals, value) }
        : (issueTexts[keyword]?.(failure) ?? { type: 'value_error', msg: message })
    const { type, msg, below } = described
    const path: Path = [...pathOf(instancePath, root), ...(below === undefined ? [] : [below])]
    issues.add({ location, path, msg, type })
  }
}

const isNullArm = (error: ErrorObject): boolean =>
  error.keyword === 'type' && error.params.type === 'null' && nullArm.test(error.schemaPath)

/** A union of literals fails once per literal, but the message is one sentence. */
const literalsAt = (path: string, errors: readonly ErrorObject[]): unknown[] =>
  errors
    .filter((error) => error.keyword === 'const' && error.instancePath === path)
    .map((error) => error.params.allowedValue)

/** The limit on the printed bytes of all issues, so that an answer is never larger than its request. */
const issuesBytesMax = 8 * 1024
const partLengthMax = 64

/** The errors of one request: the first issue of each field, up to a readable number. */
export type IssueList = {
  readonly items: Issue[]
  add(issue: Issue): void
  isFull(): boolean
}

export function issueList(): IssueList {
  const items: Issue[] = []
  const seen = new Set<string>()
  let bytes = 0
  let isCut = false
  const isFull = () => isCut || items.length >= issuesMax || bytes >= issuesBytesMax
  return {
    items,
    isFull,
    add(issue) {
      if (isFull()) return
      const path = issue.path.map(shortPart)
      const where = JSON.stringify([issue.location, ...path])
      if (seen.has(where)) return
      const printedBytes = where.length + issue.msg.length
      // Describing more errors would cost much, and none of them might fit.
      isCut = items.length > 0 && bytes + printedBytes > issuesBytesMax
      if (isCut) return
      seen.add(where)
      bytes += printedBytes
      items.push({ ...issue, path })
    },
  }
}

const shortPart = (part: string | number): string | number =>
  typeof part === 'string' && part.length > partLengthMax ? `${part.slice(0, partLengthMax)}…` : part
