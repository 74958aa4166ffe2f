import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { anthropicEncoder } from './anthropic-encoder.ts'
import { readAnthropicRequest } from './anthropic-request.ts'
import { type Conversation, isRecord, prefixOf } from './conversation.ts'
import { anthropicErrorBody, ModelError, openAiErrorBody } from './errors.ts'
import { openAiEncoder } from './openai-encoder.ts'
import { readOpenAiRequest } from './openai-request.ts'
import { type Failure, type Plan, planTurn } from './plan.ts'
import type { ModelState } from './state.ts'
import { waitFor, writeStream } from './stream-writer.ts'

/** One request to the local model, in the interface that its path names. */

export type Interface = 'openai' | 'anthropic'

const bodyBytesMax = 4_000_000
const answersMax = 256

const formats = {
  openai: { read: readOpenAiRequest, encoder: openAiEncoder, idPrefix: 'call_' },
  anthropic: { read: readAnthropicRequest, encoder: anthropicEncoder, idPrefix: 'toolu_' },
}

const interfaceOf = ({ headers, url = '' }: IncomingMessage): Interface =>
  url.startsWith('/v1/messages') || headers['anthropic-version'] !== undefined ? 'anthropic' : 'openai'

const send = (
  answer: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) => {
  const text = JSON.stringify(body)
  answer.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  })
  answer.end(text)
}

const sendError = (answer: ServerResponse, format: Interface, error: ModelError) => {
  const requestId = `req_${randomBytes(12).toString('hex')}`
  const { retryAfterSeconds } = error.details
  const body = format === 'openai' ? openAiErrorBody(error) : anthropicErrorBody(error, requestId)
  send(answer, error.status, body, {
    [format === 'openai' ? 'x-request-id' : 'request-id']: requestId,
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  })
}

const messages: Record<number, string> = {
  429: 'Rate limit reached for requests',
  500: 'The server had an error while processing your request',
  503: 'That model is currently overloaded with other requests',
  529: 'Overloaded',
}

const sendFailure = (answer: ServerResponse, format: Interface, failure: Failure) => {
  const { status, html, retry_after_seconds: seconds } = failure
  if (!html)
    return sendError(
      answer,
      format,
      new ModelError(status, messages[status] ?? `Failure ${status}`, {
        ...(seconds !== undefined && { retryAfterSeconds: seconds }),
      }),
    )
  answer.writeHead(status, { 'content-type': 'text/html' })
  answer.end(`<html><head><title>${status}</title></head><body><h1>${status}</h1></body></html>\n`)
}

/** Anthropic takes the key in either header: its documents name the first, its client of today sends the second. */
const keyOf = ({ headers }: IncomingMessage, format: Interface): string => {
  const { authorization = '', 'x-api-key': key } = headers
  return format === 'anthropic' && key !== undefined ? String(key) : authorization.replace(/^Bearer /i, '')
}

const parse = (body: Buffer): Record<string, unknown> => {
  if (body.length > bodyBytesMax) throw new ModelError(413, 'Request exceeds the maximum allowed size')
  try {
    const fields: unknown = JSON.parse(body.toString())
    if (isRecord(fields)) return fields
  } catch {
    // Answered as any other body that is no object.
  }
  throw new ModelError(400, 'We could not parse the JSON body of your request.')
}

const checkParameters = (
  fields: Record<string, unknown>,
  { rejected_parameters: names }: ModelState['settings'],
) => {
  const param = names.find((name) => fields[name] !== undefined)
  if (param === undefined) return
  const hint = param === 'max_tokens' ? " Use 'max_completion_tokens' instead." : ''
  const message = `Unsupported parameter: '${param}' is not supported with this model.${hint}`
  throw new ModelError(400, message, { param, code: 'unsupported_parameter' })
}

const modelsAnswer = (state: ModelState, format: Interface, id?: string) => {
  const created = Math.floor(state.startedMs / 1000)
  const view = (name: string) =>
    format === 'openai'
      ? { id: name, object: 'model', created, owned_by: 'portico-local-world' }
      : { type: 'model', id: name, display_name: name, created_at: new Date(state.startedMs).toISOString() }
  const names = state.book.models()
  if (id !== undefined) {
    if (names.includes(id)) return view(id)
    throw new ModelError(404, `The model '${id.slice(0, 200)}' does not exist`, { code: 'model_not_found' })
  }
  const data = names.map(view)
  return format === 'openai'
    ? { object: 'list', data }
    : { data, has_more: false, first_id: names[0], last_id: names.at(-1) }
}

/** Writes the answer as one JSON body, where its faults are delays and cuts only. */
const writeWhole = async (answer: ServerResponse, body: () => unknown, { actions }: Plan) => {
  for (const action of actions) {
    if (action.type === 'pause') await waitFor(answer, action.ms)
    if (action.type === 'reset' || action.type === 'close') return answer.socket?.resetAndDestroy()
    if (action.type === 'error') throw new ModelError(action.status, action.message)
  }
  if (!answer.destroyed) send(answer, 200, body())
}

const complete = async (
  state: ModelState,
  answer: ServerResponse,
  { format, conversation }: { format: Interface; conversation: Conversation },
) => {
  const { steps, key } = state.book.turnOf(conversation)
  const { idPrefix, encoder: createEncoder } = formats[format]
  const { inputTokens, model, hasUsage, isStream } = conversation
  const plan = planTurn({ steps, prefix: prefixOf(conversation), inputTokens, idPrefix })
  if (plan.delayMs > 0) await waitFor(answer, plan.delayMs)
  if (answer.destroyed) return
  const failure = state.book.nextFailure(key, plan.failures)
  if (failure) return sendFailure(answer, format, failure)
  const { actions, usage, wire } = plan
  const encoder = createEncoder({ model, createdMs: state.nowMs(), usage, hasUsage })
  if (isStream) await writeStream({ answer, encoder, actions, wire })
  else await writeWhole(answer, () => encoder.whole(actions), plan)
}

let answers = 0

export const respond = async (
  state: ModelState,
  incoming: IncomingMessage,
  answer: ServerResponse,
  body: Buffer,
): Promise<void> => {
  const format = interfaceOf(incoming)
  const { pathname } = new URL(incoming.url ?? '/', 'http://world')
  answers += 1
  try {
    const key = keyOf(incoming, format)
    const { keys } = state.settings
    if (keys.length > 0 && !keys.includes(key))
      // The public services repeat a part of the key as well.
      throw new ModelError(401, `Incorrect API key provided: ${key}. It is not one of the local model's.`)
    if (format === 'anthropic' && incoming.headers['anthropic-version'] === undefined)
      throw new ModelError(400, 'anthropic-version: header is required')
    if (answers > answersMax) throw new ModelError(format === 'openai' ? 503 : 529, 'Overloaded')
    const listed = /^\/v1\/models(?:\/([^/]+))?$/.exec(pathname)
    if (listed && incoming.method === 'GET') {
      const id = listed[1] === undefined ? undefined : decodeURIComponent(listed[1])
      return send(answer, 200, modelsAnswer(state, format, id))
    }
    if (pathname !== '/v1/chat/completions' && pathname !== '/v1/messages')
      throw new ModelError(404, `Invalid URL (${incoming.method} ${pathname.slice(0, 200)})`)
    if (incoming.method !== 'POST') throw new ModelError(405, 'Not allowed to use this method')
    const fields = parse(body)
    state.record(format, fields)
    checkParameters(fields, state.settings)
    const conversation = formats[format].read(fields)
    if (state.settings.refuses_prefix && prefixOf(conversation) !== '')
      throw new ModelError(
        400,
        'This model does not support assistant message prefill. The conversation must end with a user message.',
      )
    await complete(state, answer, { format, conversation })
  } catch (error) {
    if (answer.headersSent || answer.destroyed) {
      answer.destroy()
      return
    }
    const known = error instanceof ModelError ? error : new ModelError(500, 'Internal error')
    if (!(error instanceof ModelError)) process.stderr.write(`${(error as Error).stack}\n`)
    sendError(answer, format, known)
  } finally {
    answers -= 1
  }
}
