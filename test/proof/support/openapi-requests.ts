/** Requests from an OpenAPI document: valid ones, and ones with a single known error. */
import fc from 'fast-check'
import {
  type InvalidValue,
  invalidValues,
  type Loc,
  type Schema,
  validValue,
} from './json-schema-arbitrary.ts'

type Json = Record<string, unknown>
type Parameter = { name: string; in: string; required?: boolean; schema: Schema }
type Operation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, Json>
  security: Json[]
}
export type Document = { paths: Record<string, Record<string, Operation>> } & Json

export type Parts = { path: Json; query: Json; body: unknown }
export type OperationCase = {
  name: string
  method: string
  path: string
  isPublic: boolean
  isStream: boolean
  /** Documented statuses. */
  statuses: number[]
  /** Names of the query parameters, and the schema of the body with its references resolved. */
  query: string[]
  body: Schema | undefined
  /** The schema of a JSON answer under a status. */
  answer(status: number): Schema | undefined
  valid: fc.Arbitrary<Parts>
  broken: { keyword: string; loc: Loc; parts: fc.Arbitrary<Parts> }[]
}

export const resolverOf =
  (document: Json) =>
  (ref: string): Schema => {
    const found = ref
      .replace(/^#\//, '')
      .split('/')
      .reduce<unknown>((at, key) => (at as Json | undefined)?.[key], document)
    if (typeof found !== 'object' || found === null) throw new Error(`${ref} does not resolve`)
    return found as Schema
  }

type Resolve = ReturnType<typeof resolverOf>

const objectOf = (parameters: Parameter[]): Schema => ({
  type: 'object',
  properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
  required: parameters.filter(({ required }) => required).map(({ name }) => name),
})

/** The client's URL parser would remove a segment of dots; an empty one is another path. */
const isSegment = (value: unknown): boolean => !/^\.{0,2}$/.test(String(value))

/** A path without a segment, or with an empty one, is another path. */
const notInPaths = new Set(['required', 'minLength'])

/**
 * Errors that a URL cannot express: text has no wrong type where text is expected, and only its form elsewhere.
 * A list without items is a parameter that is not sent.
 */
function isExpressible({ keyword, loc }: InvalidValue, parameters: Parameter[]): boolean {
  if (keyword === 'minItems') return false
  const schema = parameters.find(({ name }) => name === loc[0])?.schema
  return (
    keyword !== 'type' || (loc.length === 1 && (schema?.type === 'integer' || schema?.type === 'boolean'))
  )
}

export function operationCases(document: Document): OperationCase[] {
  const resolve = resolverOf(document)
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => caseOf(path, method, operation, resolve)),
  )
}

function caseOf(path: string, method: string, operation: Operation, resolve: Resolve): OperationCase {
  const parameters = operation.parameters ?? []
  const at = (where: string) => parameters.filter((parameter) => parameter.in === where)
  const pathSchema = objectOf(at('path'))
  const querySchema = objectOf(at('query'))
  const bodySchema = operation.requestBody?.content['application/json']?.schema
  const options = { resolve }
  const inPath = validValue(pathSchema, options).filter((value) =>
    Object.values(value as Json).every(isSegment),
  )
  const inQuery = validValue(querySchema, options)
  const inBody = bodySchema ? validValue(bodySchema, options) : fc.constant(undefined)
  const whole = (parts: Partial<Record<keyof Parts, fc.Arbitrary<unknown>>>) =>
    fc.record({ path: inPath, query: inQuery, body: inBody, ...parts }) as fc.Arbitrary<Parts>
  // The same fields in the query and in the body are accepted in one of them.
  const body = typeof bodySchema?.$ref === 'string' ? resolve(bodySchema.$ref) : bodySchema
  const isEither = at('query').some(({ name }) => Object.hasOwn((body?.properties ?? {}) as Json, name))
  const noBody = isEither ? { body: fc.constant(undefined) } : {}
  const noQuery = isEither ? { query: fc.constant({}) } : {}

  const inText = (part: 'path' | 'query', schema: Schema) =>
    invalidValues(schema, options)
      .filter(({ loc, keyword }) => loc.length > 0 && (part === 'query' || !notInPaths.has(keyword)))
      .filter((mutation) => isExpressible(mutation, at(part)))
      .map(({ keyword, loc, value }) => ({
        keyword,
        loc: [part, ...loc],
        parts: whole({ ...noBody, [part]: asTextValue(value, keyword, part) }),
      }))
  const inJson = bodySchema
    ? invalidValues(bodySchema, options).map(({ keyword, loc, value }) => ({
        keyword,
        loc: ['body', ...loc],
        parts: whole({ ...noQuery, body: value }),
      }))
    : []
  const answers = operation.responses
  return {
    name: operation.operationId,
    method: method.toUpperCase(),
    path,
    isPublic: operation.security.length === 0,
    isStream: Object.keys((answers['200']?.content ?? {}) as Json).includes('text/event-stream'),
    statuses: Object.keys(answers).map(Number),
    query: at('query').map((parameter) => parameter.name),
    body,
    answer(status) {
      const documented = answers[status]
      const response = typeof documented?.$ref === 'string' ? resolve(documented.$ref) : documented
      const content = response?.content as Record<string, { schema: Schema }> | undefined
      return content?.['application/json']?.schema
    },
    valid: isEither ? fc.oneof(whole(noBody), whole(noQuery)) : whole({}),
    broken: [...inText('path', pathSchema), ...inText('query', querySchema), ...inJson],
  }
}

/** In a URL a wrong type is a text that cannot be parsed as the right one. */
function asTextValue(value: fc.Arbitrary<unknown>, keyword: string, part: string): fc.Arbitrary<unknown> {
  const documented = keyword === 'type' ? value.map((object) => unreadable(object as Json)) : value
  return part === 'path'
    ? documented.filter((object) => Object.values(object as Json).every(isSegment))
    : documented
}

const unreadable = (object: Json): Json =>
  Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, typeof value === 'object' ? 'neither' : value]),
  )

/** The path and query as they are sent. */
export function urlOf(path: string, { path: inPath, query }: Parts): string {
  const filled = path.replace(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(String(inPath[name])))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const item of [value].flat()) if (item !== undefined) search.append(name, String(item))
  }
  return search.size > 0 ? `${filled}?${search}` : filled
}
