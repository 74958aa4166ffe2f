/** Five hundred requests for one operation: some valid, some wrong in one place, most of them arbitrary. */
import fc from 'fast-check'
import {
  contentTypes,
  hostileBodies,
  hostileHeaders,
  hostileQueries,
  hostileSegments,
  namesIn,
} from './hostile-inputs.ts'
import type { HttpRequest } from './http-client.ts'
import { type OperationCase, type Parts, urlOf } from './openapi-requests.ts'

export type GeneratedRequest = {
  found: OperationCase
  request: HttpRequest
  /** The expected location of a 422; undefined where any documented answer is valid. */
  wrongAt?: (string | number)[]
  /** The URL cannot be decoded, so no operation is responsible. */
  isBrokenUrl?: boolean
}

/** Values of the running gateway, so that not every request ends at the first look-up. */
export type KnownValues = Readonly<Record<string, readonly unknown[]>>

const json = { 'content-type': 'application/json' }

const withBody = (body: unknown) =>
  body === undefined ? {} : { headers: { ...json }, body: JSON.stringify(body) }

/** No generated request waits for a task: the duration of a task is no property of the request. */
function withoutWait(parts: Parts): Parts {
  const { wait: _, ...query } = parts.query
  return { ...parts, query }
}

function withKnownValues(parts: Parts, knownValues: KnownValues, pick: number): Parts {
  const replaceKnown = (object: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(object).map(([name, value], index) => {
        const known = Object.hasOwn(knownValues, name) ? knownValues[name]! : []
        return [
          name,
          known.length > 0 && (pick + index) % 3 > 0 ? known[(pick + index) % known.length] : value,
        ]
      }),
    )
  const { path, query, body } = parts
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  return {
    path: replaceKnown(path),
    query: replaceKnown(query),
    body: isObject ? replaceKnown({ ...body }) : body,
  }
}

export function generateRequests(
  found: OperationCase,
  count: number,
  seed: number,
  knownValues: KnownValues,
): GeneratedRequest[] {
  const share = (part: number) => Math.ceil(count * part)
  const sample = <T>(arbitrary: fc.Arbitrary<T>, numRuns: number): T[] =>
    fc.sample(arbitrary, { seed, numRuns })
  const { method, path } = found

  const right = sample(found.valid, share(0.3)).map((parts, index): GeneratedRequest => {
    const whole = withoutWait(withKnownValues(parts, knownValues, seed + index))
    return { found, request: { method, path: urlOf(path, whole), ...withBody(whole.body) } }
  })
  const each = found.broken.length === 0 ? 0 : Math.ceil(share(0.3) / found.broken.length)
  const wrong = found.broken.flatMap(({ loc, parts }) =>
    sample(parts, each).map((value): GeneratedRequest => {
      const request = { method, path: urlOf(path, value), ...withBody(value.body) }
      // An optional body may be null too.
      return value.body === null ? { found, request } : { found, request, wrongAt: loc }
    }),
  )
  const rest = Math.max(0, count - right.length - wrong.length)
  return [...right, ...wrong, ...sample(hostileRequest(found), rest)]
}

/** One part of a request is arbitrary and the rest is valid, so that the arbitrary part is reached. */
function hostileRequest(found: OperationCase): fc.Arbitrary<GeneratedRequest> {
  const { method, path } = found
  const hasBody = method !== 'GET'
  const names = hasBody ? namesIn(found.body) : []
  const hostileBody = fc
    .tuple(
      hostileBodies(names),
      fc.oneof({ weight: 5, arbitrary: fc.constant('application/json') }, contentTypes),
    )
    .map(([body, type]) => ({ body, headers: type === undefined ? {} : { 'content-type': type } }))
  const rightBody = found.valid.map(({ body }) => withBody(body) as { headers?: object; body?: string })
  return fc
    .record({
      parts: found.valid,
      sent: hasBody ? fc.oneof({ weight: 2, arbitrary: hostileBody }, rightBody) : fc.constant({}),
      query: fc.oneof(fc.constant(''), hostileQueries(found.query)),
      more: fc.oneof(fc.constant({}), hostileHeaders),
      segment: fc.option(hostileSegments),
    })
    .map(({ parts, sent, query, more, segment }) => {
      const filled = path.replace(/\{([^}]+)\}/g, (_, name) =>
        segment ? segment.text : encodeURIComponent(String(parts.path[name])),
      )
      const isBrokenUrl = filled !== path && segment?.broken === true
      // `wait` is bounded and parsed like every other parameter, and has a test of its own.
      const asked = query.replace(/\bwait\b/g, 'wate')
      const { headers: own = {}, body } = sent as { headers?: Record<string, string>; body?: string }
      return {
        found,
        isBrokenUrl,
        request: {
          method,
          path: asked === '' ? filled : `${filled}?${asked}`,
          headers: { ...own, ...more },
          ...(body !== undefined && { body }),
        },
      }
    })
}
