import type { ErrorObject } from 'ajv/dist/2020.js'
import { type InputLocation, type Issue, issuesMax } from '#kernel/fault.ts'

type Path = Issue['path']
type IssueText = { type: string; msg: string; below?: string }
type Params = Record<string, unknown>

const typeWords: Record<string, IssueText> = {
  string: { type: 'string_type', msg: 'Input should be a valid string' },
  integer: { type: 'int_parsing', msg: 'Input should be a valid integer' },
  number: { type: 'float_type', msg: 'Input should be a valid number' },
  boolean: { type: 'bool_parsing', msg: 'Input should be a valid boolean' },
  object: { type: 'model_attributes_type', msg: 'Input should be a valid dictionary' },
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  null: { type: 'none_required', msg: 'Input should be None' },
}

const count = (n: unknown, unit: string): string => `${n} ${unit}${n === 1 ? '' : 's'}`
const limit = (type: string, words: string) => (params: Params) => ({
  type,
  msg: `Input should be ${words} ${params.limit}`,
})
const length = (type: string, words: string, unit: string, what: string) => (params: Params) => ({
  type,
  msg: `${what} should have ${words} ${count(params.limit, unit)}`,
})
const missing = (params: Params) => ({
  type: 'missing',
  msg: 'Field required',
  below: String(params.missingProperty),
})
const extra = (params: Params) => ({
  type: 'extra_forbidden',
  msg: 'Extra inputs are not permitted',
  below: String(params.additionalProperty ?? params.unevaluatedProperty),
})

/** `'a', 'b' or 'c'`, as FastAPI lists the allowed values. */
function choice(values: readonly unknown[]): string {
  const shown = values.map((value) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value)))
  const last = shown.pop() ?? 'nothing'
  return shown.length === 0 ? last : `${shown.join(', ')} or ${last}`
}

const issueTexts: Record<string, (params: Params) => IssueText> = {
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
  pattern: ({ pattern }) => ({
    type: 'string_pattern_mismatch',
    msg: `String should match pattern '${pattern}'`,
  }),
  multipleOf: ({ multipleOf }) => ({
    type: 'multiple_of',
    msg: `Input should be a multiple of ${multipleOf}`,
  }),
  enum: ({ allowedValues }) => ({
    type: 'literal_error',
    msg: `Input should be ${choice(allowedValues as unknown[])}`,
  }),
  const: ({ allowedValue }) => ({ type: 'literal_error', msg: `Input should be ${choice([allowedValue])}` }),
  format: ({ format }) =>
    format === 'uuid'
      ? { type: 'uuid_parsing', msg: 'Input should be a valid UUID' }
      : { type: 'value_error', msg: `Input should be a valid ${format}` },
  type: ({ type }) => {
    const named = String(Array.isArray(type) ? type[0] : type).split(',')[0] ?? ''
    return typeWords[named] ?? { type: 'value_error', msg: `Input should be a valid ${named}` }
  },
}

const wrappers = new Set(['anyOf', 'oneOf', 'if'])
const nullArm = /\/(?:anyOf|oneOf)\/\d+\/type$/

/** JSON pointer to path; a number is an index only where the value really is a list. */
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

/** Adds the errors at one location of the input in FastAPI's words; a union is described by its arms. */
export function addErrors(
  issues: IssueList,
  location: InputLocation,
  errors: readonly ErrorObject[],
  root: unknown,
): void {
  const arms = errors.filter((error) => !wrappers.has(error.keyword) && !isNullArm(error))
  const relevant = arms.length > 0 ? arms : errors
  for (const error of relevant) {
    if (issues.isFull()) return
    const literals = error.keyword === 'const' ? literalsAt(error.instancePath, relevant) : []
    const describe = issueTexts[error.keyword]
    const { type, msg, below } =
      literals.length > 1
        ? { type: 'literal_error', msg: `Input should be ${choice(literals)}`, below: undefined }
        : (describe?.(error.params) ?? { type: 'value_error', msg: error.message ?? 'Value error' })
    const path: Path = [...pathOf(error.instancePath, root), ...(below === undefined ? [] : [below])]
    issues.add({ location, path, msg, type })
  }
}

const isNullArm = (error: ErrorObject): boolean =>
  error.keyword === 'type' && error.params.type === 'null' && nullArm.test(error.schemaPath)

/** A union of literals fails once per literal; the reader wants them in one sentence. */
const literalsAt = (path: string, errors: readonly ErrorObject[]): unknown[] =>
  errors
    .filter((error) => error.keyword === 'const' && error.instancePath === path)
    .map((error) => error.params.allowedValue)

/** Printed bytes of all issues together, so that a refusal is never larger than what it refuses. */
const issuesBytesMax = 8 * 1024
const partLengthMax = 64

/** What is wrong with one request: the first issue of each field, and no more than a reader can use. */
export type IssueList = {
  readonly items: Issue[]
  add(issue: Issue): void
  isFull(): boolean
}

export function issueList(): IssueList {
  const items: Issue[] = []
  const seen = new Set<string>()
  let bytes = 0
  const isFull = () => items.length >= issuesMax || bytes >= issuesBytesMax
  return {
    items,
    isFull,
    add(issue) {
      if (isFull()) return
      const path = issue.path.map(shortPart)
      const where = JSON.stringify([issue.location, ...path])
      if (seen.has(where)) return
      const printedBytes = where.length + issue.msg.length
      if (items.length > 0 && bytes + printedBytes > issuesBytesMax) return
      seen.add(where)
      bytes += printedBytes
      items.push({ ...issue, path })
    },
  }
}

const shortPart = (part: string | number): string | number =>
  typeof part === 'string' && part.length > partLengthMax ? `${part.slice(0, partLengthMax)}…` : part
