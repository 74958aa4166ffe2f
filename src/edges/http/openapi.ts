import { describeFields, glossaryText } from '#invoke/field-descriptions.ts'
import { isAllOptional, withWait } from '#invoke/input-validation.ts'
import { plainSchema, type Schema } from '#kernel/contract/decimal-fields.ts'
import { type FaultCode, faults } from '#kernel/contract/fault.ts'
import {
  type Access,
  type Entry,
  hasTask,
  isKeyed,
  isScope,
  type Operation,
  type StreamEntry,
  type StreamTaskEntry,
} from '#kernel/contract/operation.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { nextPageOf } from './next-page.ts'
import {
  type Components,
  components,
  defaultsAsText,
  httpValidationError,
  problemSchema,
} from './openapi-components.ts'
import { introduction } from './openapi-intro.ts'

export type Documented = Pick<Operation, 'name' | 'group' | 'about' | 'entry'>
type Json = Record<string, unknown>

const interfaceVersion = '1.0.0'
const json = 'application/json'
const defaultBaseUrl = 'http://127.0.0.1:8080'

/** Builds OpenAPI 3.1 directly from the operations, because their schemas are JSON Schemas already. */
export function openapiOf(operations: readonly Documented[]): Json {
  const named = components()
  const problem = named.refer(problemSchema)
  named.refer(httpValidationError)
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    const { path, method } = operation.entry
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationObject(operation, named) }
  }
  const schemas = named.schemas()
  describeFields(schemas)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portico',
      version: interfaceVersion,
      summary: 'A unified trading and research gateway for agents and people',
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'Operator of this gateway' },
    },
    servers: serversAt(defaultBaseUrl),
    tags: tagsOf(operations),
    paths,
    components: {
      securitySchemes: {
        bearerAuth: {
          type: 'http',
          scheme: 'bearer',
          description: 'An `agt_` token of the token step, or an OAuth 2.1 access token',
        },
        backendKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-BACKEND-KEY',
          description:
            'The key of a server of the operator, made with `npm run admin -- backend-keys create`',
        },
      },
      responses: errorResponses(problem, usedStatuses(operations)),
      schemas,
    },
  }
}

function tagsOf(operations: readonly Documented[]): Json[] {
  const abouts = new Map<string, string>()
  for (const { group, about } of operations) abouts.set(group, abouts.get(group) ?? about)
  return [...abouts].map(([name, description]) => ({ name, description }))
}

const serversAt = (url: string) => [{ url, description: 'The gateway that serves this document' }]

/**
 * The document is built for the URL of the gateway on the first request, and only its text is cached. `note` says which
 * gateway serves it.
 */
export function openapiText(operations: readonly Documented[], note: string): (baseUrl: string) => string {
  const texts = new Map<string, string>()
  const textAt = (baseUrl: string): string => {
    const document = openapiOf(operations)
    const info = { ...(document.info as Json), description: `${note}\n\n${introduction}` }
    return JSON.stringify({ ...document, info, servers: serversAt(baseUrl) })
  }
  return (baseUrl) => {
    const text = texts.get(baseUrl) ?? textAt(baseUrl)
    texts.set(baseUrl, text)
    return text
  }
}

function operationObject({ name, group, entry }: Documented, named: Components): Json {
  const parameters = [
    ...parametersOf('path', pathSchema(entry), named),
    ...parametersOf('query', withWait(entry), named),
    ...(entry.bodyInQuery && entry.body ? parametersOf('query', plainSchema(entry.body), named) : []),
    ...headersOf(entry),
  ]
  return {
    operationId: name,
    tags: [group],
    summary: entry.summary,
    ...(entry.description && { description: entry.description }),
    security: securityOf(entry.access),
    ...(isScope(entry.access) && { 'x-scope': entry.access }),
    ...(parameters.length > 0 && { parameters }),
    ...(entry.body && {
      requestBody: {
        required: entry.bodyOptional !== true && !mayBeAbsent(plainSchema(entry.body)),
        content: { [json]: bodyOf(plainSchema(entry.body), named) },
      },
    }),
    responses: responsesOf(name, entry, named),
  }
}

function securityOf(access: Access): Json[] {
  if (access === 'public') return []
  return access === 'backend' ? [{ backendKey: [] }] : [{ bearerAuth: [] }]
}

function bodyOf(body: Schema, named: Components): Json {
  const [example] = Array.isArray(body.examples) ? body.examples : []
  return { schema: named.refer(defaultsAsText(body)), ...(example !== undefined && { example }) }
}

const mayBeAbsent = (body: Schema): boolean => isAllOptional(body) || acceptsNull(body)

const acceptsNull = (schema: Schema): boolean =>
  schema.type === 'null' || (Array.isArray(schema.anyOf) && schema.anyOf.some((arm) => acceptsNull(arm)))

/** A path parameter without a schema is text. */
function pathSchema({ path, params }: Entry): Schema {
  const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name ?? '')
  const declared = params ? (params.properties as Record<string, unknown>) : {}
  return {
    required: names,
    properties: Object.fromEntries(names.map((name) => [name, declared[name] ?? { type: 'string' }])),
  }
}

function parametersOf(where: 'path' | 'query', schema: Schema | undefined, named: Components): Json[] {
  const properties = isRecord(schema?.properties) ? schema.properties : {}
  const required = Array.isArray(schema?.required) ? schema.required : []
  return Object.entries(properties).map(([name, field]) => {
    const { description = glossaryText(name), ...rest } = named.refer(field as Schema)
    return {
      name,
      in: where,
      required: where === 'path' || required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
    }
  })
}

const keySchema = { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' }

function headersOf(entry: Entry): Json[] {
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Names the intent. REUSE the key whenever the same intent is repeated, above all after a timeout: the same key ' +
      'and body replay the first answer. The body field `idempotency_key` says the same.',
    schema: keySchema,
  }
  const resume = {
    name: 'Last-Event-ID',
    in: 'header',
    required: false,
    description: 'The id of the last event that arrived; the stream goes on behind it',
    schema: { type: 'string', maxLength: 255 },
  }
  return [...(isKeyed(entry) ? [key] : []), ...(entry.kind === 'stream' ? [resume] : [])]
}

function responsesOf(name: string, entry: Entry, named: Components): Json {
  const ok = okOf(name, entry, named)
  // Programs that do not know the error format of the gateway read the health report, so its answers with 200 and 503
  // have one schema.
  if (entry.path === '/health') {
    return { 200: ok, 400: responseRef(400), 503: { ...ok, description: 'The database is down' } }
  }
  return { 200: ok, ...errorsOf(entry) }
}

const nextPageHeader = {
  Link: {
    description: 'Of a full page: the path of the next one, with `rel="next"`',
    schema: { type: 'string' },
  },
}

function okOf(name: string, entry: Entry, named: Components): Json {
  if (entry.kind === 'stream' && !hasTask(entry)) return streamOf(entry, named)
  const replayed = {
    'Idempotent-Replayed': {
      description: 'Present when the answer is that of an earlier request under the same key',
      schema: { type: 'string', enum: ['true'] },
    },
  }
  const answer = { [json]: { schema: outputOf(name, entry, named) } }
  const streamed = entry.kind === 'stream' ? streamOf(entry, named) : undefined
  return {
    description: streamed ? 'A stream of events; with `stream: false` one answer' : 'The answer',
    ...(isKeyed(entry) && { headers: replayed }),
    ...(nextPageOf(entry) && { headers: nextPageHeader }),
    content: { ...streamed?.content, ...answer },
  }
}

const streamOf = (entry: StreamEntry, named: Components) => ({
  description: 'A stream of events',
  content: { 'text/event-stream': { schema: named.refer(plainSchema(entry.event)) } },
})

type AnswerEntry = Exclude<Entry, { kind: 'stream' }> | StreamTaskEntry

/** The answer of a task operation is the common task view with the result of this operation. */
function outputOf(name: string, entry: AnswerEntry, named: Components): Json {
  const output = named.refer(plainSchema(entry.output))
  if (entry.kind !== 'task' || entry.result === undefined) return output
  const description = 'Null until the task has ended, and where an operator ended it as executed'
  const result = { anyOf: [entry.result, { type: 'null' }], description }
  const own = { type: 'object', properties: { result } }
  const id = `${name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Task`
  return named.refer({
    $id: id,
    description: `Task of ${name}`,
    allOf: [plainSchema(entry.output), own],
  })
}

const responseNames: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  402: 'InsufficientCredits',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  413: 'BodyTooLarge',
  415: 'UnsupportedMediaType',
  422: 'ValidationFailed',
  429: 'RateLimited',
  500: 'Internal',
  502: 'UpstreamRejected',
  503: 'Unavailable',
  504: 'UpstreamTimeout',
}

export function errorStatuses(entry: Entry): number[] {
  const declared = (entry.faults ?? []).flatMap((code) =>
    Object.hasOwn(faults, code) ? [faults[code as FaultCode].status] : [],
  )
  const takesBody = entry.method !== 'GET'
  return [
    ...new Set([
      ...(entry.access === 'public' ? [] : [401, 403]),
      ...(entry.path.includes('{') ? [404] : []),
      ...(entry.kind === 'task' || entry.kind === 'act' || hasTask(entry) ? [409] : []),
      ...(takesBody ? [413, 415] : []),
      // Every operation rejects undeclared query parameters.
      422,
      429,
      500,
      503,
      ...declared,
    ]),
  ].sort((a, b) => a - b)
}

function errorsOf(entry: Entry): Json {
  return Object.fromEntries(errorStatuses(entry).map((status) => [status, responseRef(status)]))
}

const responseRef = (status: number) => ({
  $ref: `#/components/responses/${responseNames[status] ?? 'Internal'}`,
})

const header = (description: string, type = 'string') => ({ description, schema: { type } })
const retryAfter = { 'Retry-After': header('Seconds to wait', 'integer') }
const responseHeaders: Record<number, Json> = {
  401: { 'WWW-Authenticate': header('Where the protected-resource document is') },
  429: { ...retryAfter, RateLimit: header('What is left'), 'RateLimit-Policy': header('The rule') },
  503: retryAfter,
}

const usedStatuses = (operations: readonly Documented[]): Set<number> =>
  new Set([400, ...operations.flatMap(({ entry }) => errorStatuses(entry))])

function errorResponses(problem: Json, used: ReadonlySet<number>): Json {
  const shown = Object.entries(responseNames).filter(([status]) => used.has(Number(status)))
  const entries = shown.map(([status, name]) => {
    const codes = Object.entries(faults).filter(([, row]) => row.status === Number(status))
    const schema = status === '422' ? { $ref: '#/components/schemas/HTTPValidationError' } : problem
    const headers = responseHeaders[Number(status)]
    return [
      name,
      {
        description: codes.map(([code, { when }]) => `\`${code}\`: ${when}`).join('; '),
        ...(headers && { headers }),
        content: { [json]: { schema } },
      },
    ] as const
  })
  return Object.fromEntries(entries)
}
