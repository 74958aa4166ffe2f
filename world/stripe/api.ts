import { randomBytes } from 'node:crypto'
import type { Call } from './call.ts'
import { apiVersion } from './catalogue.ts'
import { changingCalls } from './changing-calls.ts'
import { invalid, StripeError } from './errors.ts'
import type { Events } from './events.ts'
import { addExpansions, type Shown } from './expand.ts'
import { checkParams, expandOf, type Params, parseForm } from './form.ts'
import { shown } from './objects.ts'
import { readingCalls } from './reading-calls.ts'
import { tick } from './renewals.ts'
import type { Shop } from './shop.ts'
import type { Store } from './store.ts'

/** The API: keys, parameters, errors and replies, around the calls. */

export type ApiRequest = {
  method: string
  path: string
  query: string
  body: string
  key: string | undefined
  authorization: string | undefined
  version: string | undefined
  hostUrl: string
}
export type ApiReply = { status: number; body: string; headers: Record<string, string> }
type Reply = { status: number; body: string }
type ApiDeps = {
  shop: Shop
  events: Events
  nowMs: () => number
  /** Decides whether a call fails with a 500, before or after it has acted. */
  nextError: () => 'before' | 'after' | undefined
}
type State = ApiDeps & { calls: readonly Call[]; running: Set<string> }

const keyTtlMs = 86_400_000
const keyCharsMax = 255

/** A result that is an object of the store is shown without what only the world sees. */
function viewOf(store: Store, result: object, params: Params): Shown {
  const show = (object: object): Shown => (store.isStored(object) ? shown(object) : ({ ...object } as Shown))
  const expansions = expandOf(params)
  if ('data' in result && Array.isArray(result.data)) {
    const data = (result.data as object[]).map(show)
    const below = expansions.map((path) => {
      if (!path.startsWith('data.')) throw invalid(`This property cannot be expanded (${path}).`)
      return path.slice('data.'.length)
    })
    for (const each of data) addExpansions(store, each, below)
    return { ...result, data }
  }
  const view = show(result)
  addExpansions(store, view, expansions)
  return view
}

const assertKey = (authorization: string | undefined): void => {
  const key = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1]
  if (key === undefined)
    throw new StripeError(401, 'invalid_request_error', 'You did not provide an API key.')
  if (!/^(?:sk|rk)_test_\w{8,}$/.test(key))
    throw new StripeError(
      401,
      'invalid_request_error',
      `Invalid API Key provided: ${key.slice(0, 8)}****${key.slice(-4)}`,
    )
}

const requestId = (): string => `req_${randomBytes(7).toString('hex')}`

function find({ calls }: State, method: string, path: string): { call: Call; id: string } {
  const call = calls.find((each) => each.method === method && each.path.test(path))
  if (!call)
    throw new StripeError(404, 'invalid_request_error', `Unrecognized request URL (${method}: ${path}).`)
  return { call, id: call.path.exec(path)?.[1] ?? '' }
}

const unknownError = () =>
  new StripeError(500, 'api_error', 'An unknown error occurred. Please contact support if it persists.')

function execute(state: State, request: ApiRequest, id: string): Reply {
  const { shop, events, nextError } = state
  const { method, path, query, body, hostUrl } = request
  const { call, id: objectId } = find(state, method, path)
  const params = parseForm(method === 'POST' ? body : query)
  checkParams(call.fields, params)
  events.setRequest(id, request.key ?? null)
  const error = method === 'POST' ? nextError() : undefined
  try {
    if (error === 'before') throw unknownError()
    const result = viewOf(shop.store, call.run({ params, id: objectId, hostUrl }), params)
    if (method !== 'GET') shop.store.save()
    if (error === 'after') throw unknownError()
    return { status: 200, body: JSON.stringify(result, null, 2) }
  } finally {
    events.setRequest(null, null)
  }
}

function errorReply(error: unknown): Reply {
  if (!(error instanceof StripeError)) throw error
  return { status: error.status, body: JSON.stringify(error.body(), null, 2) }
}

/** Replies of a key are those of its first request for a day, failures of the server included. */
function storedReply({ shop, nowMs }: State, key: string, fingerprint: string) {
  const stored = shop.store.replies.get(key)
  if (!stored || nowMs() - stored.atMs > keyTtlMs) return undefined
  if (stored.fingerprint === fingerprint) return stored
  throw new StripeError(
    400,
    'idempotency_error',
    `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`,
  )
}

function executeOnce(state: State, request: ApiRequest, id: string): Reply {
  try {
    return execute(state, request, id)
  } catch (error) {
    return errorReply(error)
  }
}

type Answer = Reply & { extra: Record<string, string> }

function answerKeyed(state: State, request: ApiRequest, id: string, key: string): Answer {
  const { shop, nowMs, running } = state
  if (key.length > keyCharsMax) throw invalid('The idempotency key is too long.')
  const fingerprint = `${request.method} ${request.path} ${request.body}`
  const stored = storedReply(state, key, fingerprint)
  if (stored)
    return {
      status: stored.status,
      body: stored.body,
      extra: { 'idempotent-replayed': 'true', 'original-request': stored.requestId },
    }
  if (running.has(key))
    throw new StripeError(409, 'idempotency_error', 'Another request with this key is in progress.', {
      code: 'idempotency_key_in_use',
    })
  running.add(key)
  try {
    const reply = executeOnce(state, request, id)
    // Parameters that are refused are not remembered.
    if (reply.status >= 400 && reply.status < 500) return { ...reply, extra: {} }
    shop.store.replies.set(key, { fingerprint, requestId: id, atMs: nowMs(), ...reply })
    shop.store.save()
    return { ...reply, extra: { 'original-request': id } }
  } finally {
    running.delete(key)
  }
}

function answer(state: State, request: ApiRequest, id: string): Answer {
  assertKey(request.authorization)
  const { key, method } = request
  if (key !== undefined && method === 'POST') return answerKeyed(state, request, id, key)
  return { ...execute(state, request, id), extra: {} }
}

export function createApi(deps: ApiDeps) {
  const { shop } = deps
  const calls = [...changingCalls(shop), ...readingCalls(shop.store)]
  const state: State = { ...deps, calls, running: new Set() }
  return (request: ApiRequest): ApiReply => {
    const id = requestId()
    tick(shop)
    let reply: Answer
    try {
      reply = answer(state, request, id)
    } catch (error) {
      reply = { ...errorReply(error), extra: {} }
    }
    return {
      status: reply.status,
      body: reply.body,
      headers: {
        'content-type': 'application/json',
        'request-id': id,
        'stripe-version': request.version ?? apiVersion,
        ...(request.key !== undefined && { 'idempotency-key': request.key }),
        ...reply.extra,
      },
    }
  }
}
