import { Fault } from '#kernel/contract/fault.ts'
import type { Net, NetReply } from '#kernel/wire/upstream-http.ts'
import { type FormFields, formText } from './form.ts'
import { errorOf, type Page, pageOf, readReply } from './wire.ts'

/** Requests to the provider, and what its errors mean. */

export type Request = { method: 'GET' | 'POST' | 'DELETE'; path: string; fields?: FormFields; key?: string }
type Read<T> = Parameters<typeof readReply<T>>[1]
/**
 * Nothing was made under the key. A failure of the provider is repeated under it for a day, and a refusal is final for
 * what was asked, so that only another key and another time can help.
 */
export type Made<T> = { made: T; refusal?: never } | { made?: never; refusal: Fault }

const apiVersion = '2026-10-28.endive'
const timeoutMs = 15_000
const maxBytes = 2 * 1024 * 1024
const notFound = 404
const serverError = 500
const tooMany = 429
const keyInUse = 'idempotency_key_in_use'
/** A subscription that has ended is missing for a change, with another status than one that never was. */
const missingObject = 'resource_missing'

const away = (message: string, extras: Record<string, unknown> = {}): Fault =>
  new Fault('unavailable', message, { extras: { upstream: 'stripe', ...extras } })

export function faultOf({ status, body, retryAfterMs }: NetReply): Fault {
  const { code, message } = errorOf(body)
  if (status === 401 || status === 403) return away('The payment provider refuses the key of this gateway')
  if (status === tooMany || status >= serverError || code === keyInUse)
    return away(`The payment provider answered with status ${status}`, {
      ...(retryAfterMs !== undefined && { retry_after: Math.ceil(retryAfterMs / 1_000) }),
    })
  return new Fault('upstream_rejected', `The payment provider refuses the request: ${message}`, {
    extras: { upstream: 'stripe', upstream_code: code ?? String(status) },
  })
}

export type Transport = ReturnType<typeof createTransport>

export function createTransport({ url, key: apiKey, net }: { url: string; key: string; net: Net }) {
  const send = ({ method, path, fields = {}, key }: Request): Promise<NetReply> => {
    const form = formText(fields)
    return net.fetch({
      url: `${url.replace(/\/+$/, '')}/v1/${path}${method === 'POST' || form === '' ? '' : `?${form}`}`,
      method,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${apiKey}`,
        'stripe-version': apiVersion,
        ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(method === 'POST' && { body: form }),
      timeoutMs,
      maxBytes,
    })
  }
  const call = async <T>(request: Request, read: Read<T>): Promise<T> => {
    const reply = await send(request)
    if (reply.status !== 200) throw faultOf(reply)
    return readReply(reply.body, read)
  }
  /** Returns undefined where the provider has no such object. */
  const find = async <T>(request: Request, read: Read<T>): Promise<T | undefined> => {
    const reply = await send(request)
    if (reply.status === notFound || errorOf(reply.body).code === missingObject) return undefined
    if (reply.status !== 200) throw faultOf(reply)
    return readReply(reply.body, read)
  }
  const make = async (request: Request & { key: string }): Promise<Made<Page>> => {
    const reply = await send(request)
    if (reply.status === 200) return { made: readReply(reply.body, pageOf) }
    const refusal = faultOf(reply)
    if (reply.status < serverError && refusal.code !== 'upstream_rejected') throw refusal
    return { refusal }
  }
  return { send, call, find, make }
}
