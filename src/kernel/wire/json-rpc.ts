import { createLearnedLimit, type LearnedLimit } from '#kernel/async/learned-limit.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from './json.ts'
import type { Net } from './upstream-http.ts'

/** JSON-RPC 2.0 over HTTP, for the nodes of every chain. Calls are sent in batches of a size that the node accepts. */

export type RpcCall = { method: string; params: unknown[] }
export type RpcError = { code: number; message: string; data?: unknown }
export type RpcAnswer = { result: unknown } | { error: RpcError }
export type JsonRpc = (calls: readonly RpcCall[], signal?: AbortSignal) => Promise<RpcAnswer[]>

type JsonRpcOptions = {
  url: string
  net: Net
  name: string
  /** The time limit of all requests that the calls need. */
  timeoutMs: number
  batchLimit?: LearnedLimit
  parse?: (body: string) => unknown
}

/**
 * Creates the limit of calls in one batch, which a node's refusals lower: public nodes accept 3, 10, 20 or 100
 * calls.
 */
export const createBatchLimit = (): LearnedLimit => createLearnedLimit({ max: 50, growAfterMs: 600_000 })

const maxBytes = 4 * 1024 * 1024
const rateLimit = new Error('rate limit')

export const isRateLimitFault = (error: unknown): error is Fault =>
  error instanceof Fault && error.cause === rateLimit

export const isRateLimited = ({ code, message }: RpcError): boolean =>
  !/revert|simulation|results|range|batch/i.test(message) &&
  (code === 429 ||
    code === -32005 ||
    /rate limit|request limit|too many requests|capacity|compute units/i.test(message))

type Reply = { answers: RpcAnswer[] } | { refusal: RpcError }
type Post = (calls: readonly RpcCall[]) => Promise<Reply>

/**
 * Returns one answer per call, in the order of the calls. Throws `unavailable` for a reply that answers no call:
 * a status, an error page, a malformed or incomplete batch. A batch that the node refuses for its length is sent
 * again in halves.
 */
export function createJsonRpc(options: JsonRpcOptions): JsonRpc {
  const { url, net, timeoutMs, batchLimit = createBatchLimit() } = options
  return async (calls, signal) => {
    const endMs = monotonicMs() + timeoutMs
    const post: Post = async (some) => {
      const { status, body } = await net.fetch({
        url,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: requestOf(some),
        timeoutMs: Math.max(1, Math.ceil(endMs - monotonicMs())),
        maxBytes,
        ...(signal && { signal }),
      })
      return replyOf(options, { status, body, count: some.length })
    }
    return sendInPieces(post, calls, batchLimit)
  }
}

async function sendInPieces(
  post: Post,
  calls: readonly RpcCall[],
  limit: LearnedLimit,
): Promise<RpcAnswer[]> {
  const size = limit.value()
  const pieces = Array.from({ length: Math.ceil(calls.length / size) }, (_, index) =>
    calls.slice(index * size, (index + 1) * size),
  )
  return (await Promise.all(pieces.map((piece) => sendPiece(post, piece, limit)))).flat()
}

async function sendPiece(post: Post, calls: readonly RpcCall[], limit: LearnedLimit): Promise<RpcAnswer[]> {
  const reply = await post(calls)
  if ('answers' in reply) return reply.answers
  const { refusal } = reply
  const half = Math.floor(calls.length / 2)
  const first = await sendInPieces(post, calls.slice(0, half), limit)
  // If fewer calls get the same error, their number was not the cause.
  if (first.every((answer) => isSameError(answer, refusal))) return calls.map(() => ({ error: refusal }))
  limit.lower(half)
  return [...first, ...(await sendInPieces(post, calls.slice(half), limit))]
}

const isSameError = (answer: RpcAnswer, { code, message }: RpcError): boolean =>
  'error' in answer && answer.error.code === code && answer.error.message === message

type Received = { status: number; body: string; count: number }

function replyOf(options: JsonRpcOptions, { status, body, count }: Received): Reply {
  // Some nodes refuse a long batch with a server error.
  if (count > 1 && (status === 413 || (status >= 400 && /batch/i.test(body))))
    return { refusal: { code: status, message: `status ${status}` } }
  // A proxy's error page is no reply to the call, whatever its status.
  if (status === 429 || status >= 500 || (status >= 400 && !body.includes('jsonrpc')))
    throw unusable(options, `status ${status}`, status === 429 ? rateLimit : undefined)
  const answers = answersOf(options, body, count)
  const refusal = count > 1 ? batchRefusalOf(answers) : undefined
  return refusal ? { refusal } : { answers }
}

/** Returns the error by which a node refuses a whole batch: one that names the batch, or that all calls share. */
function batchRefusalOf(answers: readonly RpcAnswer[]): RpcError | undefined {
  const errors = answers.flatMap((answer) => ('error' in answer ? [answer.error] : []))
  const isOwn = ({ message }: RpcError): boolean => /revert|simulation/i.test(message)
  const named = errors.find((error) => /batch/i.test(error.message) && !isOwn(error))
  if (named) return named
  const [first] = errors
  if (!first || isOwn(first) || isRateLimited(first)) return undefined
  return answers.every((answer) => isSameError(answer, first)) ? first : undefined
}

const unusable = ({ name }: JsonRpcOptions, what: string, cause?: Error): Fault =>
  new Fault('unavailable', `The ${name} node answered with ${what}`, { cause })

function answersOf(options: JsonRpcOptions, body: string, count: number): RpcAnswer[] {
  const { parse = JSON.parse } = options
  let parsed: unknown
  try {
    parsed = parse(body)
  } catch {
    throw unusable(options, 'something that is not JSON')
  }
  const list = Array.isArray(parsed) ? parsed : [parsed]
  const byId = new Map<unknown, RpcAnswer>()
  for (const item of list) {
    if (!isRecord(item)) throw unusable(options, 'a malformed envelope')
    byId.set(item.id, answerOf(options, item))
  }
  // Some nodes answer a refused batch with one error without an id.
  const unnamed = list.length === 1 ? byId.get(null) : undefined
  const whole = unnamed && 'error' in unnamed ? unnamed : undefined
  return Array.from({ length: count }, (_, index) => {
    const answer = byId.get(index + 1) ?? whole
    if (!answer) throw unusable(options, 'an incomplete batch')
    return answer
  })
}

function answerOf(options: JsonRpcOptions, item: Record<string, unknown>): RpcAnswer {
  const { error } = item
  if (isRecord(error)) {
    const code = typeof error.code === 'number' ? error.code : 0
    const message = typeof error.message === 'string' ? error.message : 'no reason given'
    return { error: { code, message, data: error.data } }
  }
  if (!('result' in item)) throw unusable(options, 'neither result nor error')
  return { result: item.result }
}

const requestOf = (calls: readonly RpcCall[]): string => {
  const envelopes = calls.map((call, index) => ({ jsonrpc: '2.0', id: index + 1, ...call }))
  return JSON.stringify(envelopes.length === 1 ? envelopes[0] : envelopes)
}
