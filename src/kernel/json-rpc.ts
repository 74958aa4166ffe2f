import { Fault } from './fault.ts'
import { isRecord } from './json.ts'
import type { Net } from './net.ts'

/** JSON-RPC 2.0 over HTTP, as the nodes of every chain speak it; the calls of one request go out as one batch. */

export type RpcCall = { method: string; params: unknown[] }
export type RpcError = { code: number; message: string; data?: unknown }
export type RpcAnswer = { result: unknown } | { error: RpcError }
export type JsonRpc = (calls: readonly RpcCall[], signal?: AbortSignal) => Promise<RpcAnswer[]>

type JsonRpcOptions = {
  url: string
  net: Net
  /** The name of the node in messages. */
  name: string
  timeoutMs: number
  parse?: (body: string) => unknown
}

const maxBytes = 4 * 1024 * 1024

/**
 * One answer per call, in the order of the calls. Throws `unavailable` for a reply that answers no call: a status, an
 * error page, a malformed or incomplete batch.
 */
export function createJsonRpc({ url, net, name, timeoutMs, parse = JSON.parse }: JsonRpcOptions): JsonRpc {
  const unusable = (what: string) => new Fault('unavailable', `The ${name} node answered with ${what}`)

  const answerOf = (item: Record<string, unknown>): RpcAnswer => {
    const { error } = item
    if (isRecord(error)) {
      const code = typeof error.code === 'number' ? error.code : 0
      const message = typeof error.message === 'string' ? error.message : 'no reason given'
      return { error: { code, message, data: error.data } }
    }
    if (!('result' in item)) throw unusable('neither result nor error')
    return { result: item.result }
  }

  const answersOf = (body: string, count: number): RpcAnswer[] => {
    let parsed: unknown
    try {
      parsed = parse(body)
    } catch {
      throw unusable('something that is not JSON')
    }
    const list = Array.isArray(parsed) ? parsed : [parsed]
    const byId = new Map<unknown, RpcAnswer>()
    for (const item of list) {
      if (!isRecord(item)) throw unusable('a malformed envelope')
      byId.set(item.id, answerOf(item))
    }
    // Some nodes answer a refused batch with one error of no id.
    const whole = list.length === 1 && count > 1 ? byId.get(null) : undefined
    return Array.from({ length: count }, (_, index) => {
      const answer = byId.get(index + 1) ?? whole
      if (!answer) throw unusable('an incomplete batch')
      return answer
    })
  }

  return async (calls, signal) => {
    const { status, body } = await net.fetch({
      url,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: requestOf(calls),
      timeoutMs,
      maxBytes,
      ...(signal && { signal }),
    })
    // An error page of a proxy is no reply to the call, with any status.
    if (status === 429 || status >= 500 || (status >= 400 && !body.includes('jsonrpc')))
      throw unusable(`status ${status}`)
    return answersOf(body, calls.length)
  }
}

const requestOf = (calls: readonly RpcCall[]): string => {
  const envelopes = calls.map((call, index) => ({ jsonrpc: '2.0', id: index + 1, ...call }))
  return JSON.stringify(envelopes.length === 1 ? envelopes[0] : envelopes)
}
