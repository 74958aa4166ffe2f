/** The door of HTTP, asked by the name of an operation and one flat record, as a door without a transport is. */
import assert from 'node:assert/strict'
import { inputLocations } from '#invoke/input-location.ts'
import { withWait } from '#invoke/input-validation.ts'
import type { FaultCode, InputLocation } from '#kernel/contract/fault.ts'
import { type Entry, isKeyed, type Operation } from '#kernel/contract/operation.ts'
import type { Door, DoorOptions, DoorReply } from '../../harness/in-process-door.ts'
import { eventsOf } from '../../harness/stream.ts'

type Fields = Record<string, unknown>
type HttpCall = { url: string; method: string; headers: Record<string, string>; body?: string }
type PrintedIssue = { loc: [InputLocation, ...(string | number)[]]; msg: string; type: string; ctx?: Fields }
type Problem = Fields & { code: FaultCode; detail: string; retryable: boolean; errors?: PrintedIssue[] }

export function httpDoor(operations: readonly Pick<Operation, 'name' | 'entry'>[], baseUrl: string): Door {
  const entries = new Map(operations.map(({ name, entry }) => [name, entry]))
  return async (name, input, options = {}) => {
    const entry = entries.get(name)
    if (!entry) throw new Error(`no ${name}`)
    const { url, ...request } = requestOf(entry, input, options, baseUrl)
    const reply = await fetch(url, request)
    const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    if (isStream) {
      return {
        status: 200,
        result: withoutAddresses(await readEvents(reply, options.itemsMax), baseUrl),
        ...unkeyed,
      }
    }
    const body = (await reply.json()) as Fields
    if (reply.status !== 200) return refusal(reply.status, body as Problem)
    return {
      status: 200,
      result: withoutAddresses(body, baseUrl),
      replayed: reply.headers.get('idempotent-replayed') === 'true',
      key: reply.headers.get('idempotency-key') ?? undefined,
    }
  }
}

const unkeyed = { replayed: false, key: undefined }

function requestOf(
  entry: Entry,
  input: Fields,
  { authorization, key }: DoorOptions,
  baseUrl: string,
): HttpCall {
  const locationOf = inputLocations({ params: entry.params, query: withWait(entry), body: entry.body })
  const path: Fields = {}
  const query = new URLSearchParams()
  const body: Fields = {}
  for (const [name, value] of Object.entries(input)) {
    const location = isKeyed(entry) && name === 'idempotency_key' ? 'body' : locationOf(name)
    if (location === 'query') for (const each of [value].flat()) query.append(name, String(each))
    else if (location === 'path') path[name] = value
    else body[name] = value
  }
  const filled = entry.path.replace(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(String(path[name])))
  const hasBody = entry.body !== undefined
  return {
    url: `${baseUrl}${filled}${query.size > 0 ? `?${query}` : ''}`,
    method: entry.method,
    headers: {
      // Only this form has code, message and extras beside the issues.
      accept: 'application/problem+json',
      ...(authorization !== undefined && { authorization }),
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(hasBody && { 'content-type': 'application/json' }),
    },
    ...(hasBody && { body: JSON.stringify(body) }),
  }
}

function refusal(status: number, problem: Problem): DoorReply {
  const {
    type,
    title: _,
    status: printed,
    detail,
    errors,
    code,
    retryable,
    request_id: id,
    ...extras
  } = problem
  assert.ok(String(type).endsWith(`#${code}`) && typeof id === 'string', JSON.stringify(problem))
  assert.equal(printed, status)
  const issues = (errors ?? []).map(({ loc: [location, ...path], ...issue }) => ({
    location,
    path,
    ...issue,
  }))
  return { status, fault: { status, code, message: detail, retryable, extras, issues } }
}

/** Leaving the loop closes the connection. */
async function readEvents(reply: Response, itemsMax = 1): Promise<unknown[]> {
  const read: unknown[] = []
  for await (const event of eventsOf(reply)) if (read.push(event) >= itemsMax) return read
  return read
}

/** HTTP alone has addresses: each task has the one of itself, which goes before the comparison. */
export function withoutAddresses(value: unknown, baseUrl: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutAddresses(item, baseUrl))
  if (typeof value !== 'object' || value === null) return value
  const { poll_url, ...fields } = value as Fields
  const isTask = 'task_id' in fields && 'idempotency_key' in fields
  assert.equal(poll_url, isTask ? `${baseUrl}/v1/tasks/${fields.task_id}` : undefined)
  const shown = Object.entries(fields).map(([name, field]) => [name, withoutAddresses(field, baseUrl)])
  return Object.fromEntries(shown)
}
