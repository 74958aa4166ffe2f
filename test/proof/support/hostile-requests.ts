/**
 * Requests that try to be expensive: bodies, queries, paths and headers of every size up to the limits, by the
 * contracts.
 */

import type { HttpRequest } from './http-client.ts'
import type { OperationCase } from './openapi-requests.ts'

type Make = (bytes: number, names: readonly string[]) => string

const repeat = (piece: string, bytes: number): string =>
  piece.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(piece))))
const list = (item: string, bytes: number): string => `[${repeat(`${item},`, bytes - 2).slice(0, -1)}]`
const text = (value: string): string => `"${value}"`
const objectOf = (pairs: readonly string[]): string => `{${pairs.join(',')}}`
const inEach = (names: readonly string[], bytes: number, value: (bytes: number) => string): string => {
  const all = names.length > 0 ? names : ['x']
  const share = Math.max(8, Math.floor(bytes / all.length))
  return objectOf(all.map((name) => `${JSON.stringify(name)}:${value(share)}`))
}
const numbered = (prefix: string, value: string, bytes: number): string => {
  const each = prefix.length + value.length + 10
  return objectOf(
    Array.from({ length: Math.max(1, Math.floor(bytes / each)) }, (_, at) => `"${prefix}${at}":${value}`),
  )
}
const nested = (open: string, inner: string, close: string, levels: number): string =>
  open.repeat(levels) + inner + close.repeat(levels)

const bodies: Record<string, Make> = {
  'long keys over numbers without a double': (bytes) =>
    objectOf([`"${repeat('k', bytes / 2)}":${list('1e999', bytes / 2)}`]),
  'a key of the longest allowed length over such numbers': (bytes) =>
    objectOf([`"${'k'.repeat(256)}":${list('1e999', bytes)}`]),
  'many keys': (bytes) => numbered('k', '1', bytes),
  'many long keys': (bytes) => numbered('k'.repeat(240), '1e999', bytes),
  'many values in each field': (bytes, names) => inEach(names, bytes, (share) => list('0', share)),
  'many numbers without a double': (bytes, names) => inEach(names, bytes, (share) => list('1e999', share)),
  'many nulls': (bytes, names) => inEach(names, bytes, (share) => list('null', share)),
  'many empty objects': (bytes, names) => inEach(names, bytes, (share) => list('{}', share)),
  'many objects of the fields': (bytes, names) =>
    inEach(names, bytes, (share) =>
      list(objectOf(names.slice(0, 4).map((name) => `${JSON.stringify(name)}:"x"`)), share),
    ),
  'a list of lists': (bytes) => list('[]', bytes),
  'deep lists': (bytes, names) => inEach(names, bytes, (share) => list(nested('[', '1', ']', 28), share)),
  'deep objects': (bytes, names) =>
    inEach(names, bytes, (share) => list(nested('{"a":', '1e999', '}', 28), share)),
  'deeper than allowed': (bytes) => nested('[', '', ']', bytes / 2),
  'an open end': (bytes) => repeat('{"a":', bytes),
  escapes: (bytes, names) => inEach(names, bytes, (share) => text(repeat('\\u0000', share))),
  'escaped quotes': (bytes, names) => inEach(names, bytes, (share) => text(repeat('\\"', share))),
  'half characters': (bytes, names) => inEach(names, bytes, (share) => text(repeat('\\ud800', share))),
  'long texts': (bytes, names) => inEach(names, bytes, (share) => text(repeat('a', share))),
  'texts of digits': (bytes, names) => inEach(names, bytes, (share) => text(repeat('1', share))),
  'texts of zeros behind a point': (bytes, names) =>
    inEach(names, bytes, (share) => text(`0.${repeat('0', share)}1`)),
  'numbers of thousands of digits': (bytes, names) => inEach(names, bytes, (share) => repeat('9', share)),
  'fractions of thousands of digits': (bytes, names) =>
    inEach(names, bytes, (share) => `0.${repeat('0', share)}1`),
  'huge exponents': (bytes, names) =>
    inEach(names, bytes, (share) => `1e${repeat('9', Math.min(share, 2_000))}`),
  'characters of four bytes': (bytes, names) => inEach(names, bytes, (share) => text(repeat('💣', share))),
  'combining characters': (bytes, names) => inEach(names, bytes, (share) => text(repeat('\u0301', share))),
  'spaces only': (bytes) => repeat(' ', bytes),
  'spaces in a list': (bytes) => `[${repeat(' ', bytes)}1]`,
  'a text alone': (bytes) => text(repeat('x', bytes)),
  'no JSON': (bytes) => repeat('x', bytes),
  'an address of dashes': (bytes, names) => inEach(names, bytes, (share) => text(`0x${repeat('-f', share)}`)),
}

const pieces = ['a', '%F0%9F%92%A3', '%00', '%', '1', '%2b', 'eyJ', '.', '[]', '-', '%C3%A9', 'sig']
const queries: Record<string, Make> = {
  ...Object.fromEntries(
    pieces.map((piece): [string, Make] => [
      `each parameter of ${piece}`,
      (bytes, names) =>
        (names.length > 0 ? names : ['x'])
          .map((name, _, all) => `${name}=${repeat(piece, bytes / all.length)}`)
          .join('&'),
    ]),
  ),
  'one parameter again and again': (bytes, names) => repeat(`${names[0] ?? 'x'}=1&`, bytes),
  'each parameter again and again': (bytes, names) =>
    repeat(`${names.map((name) => `${name}=1`).join('&')}&`, bytes),
  'many unknown parameters': (bytes) =>
    Array.from({ length: Math.floor(bytes / 8) }, (_, at) => `k${at}=1`).join('&'),
  'a long name': (bytes) => `${repeat('n', bytes)}=1`,
  'ampersands only': (bytes) => repeat('&', bytes),
  'brackets in names': (bytes, names) => repeat(`${names[0] ?? 'x'}[a][b]=1&`, bytes),
}

const headers: Record<string, (bytes: number) => Record<string, string | string[]>> = {
  'one huge header': (bytes) => ({ 'x-padding': 'y'.repeat(bytes) }),
  'many headers': (bytes) =>
    Object.fromEntries(Array.from({ length: Math.floor(bytes / 14) }, (_, at) => [`x-${at}`, 'y'])),
  'a long idempotency key': (bytes) => ({ 'idempotency-key': 'k'.repeat(bytes) }),
  'a long request id': (bytes) => ({ 'x-request-id': 'r'.repeat(bytes) }),
  'a long accept': (bytes) => ({ accept: repeat('application/problem+json,', bytes) }),
  'a long event id': (bytes) => ({ 'last-event-id': '9'.repeat(bytes) }),
  'a long list of proxies': (bytes) => ({ 'x-forwarded-for': repeat('10.0.0.1, ', bytes).slice(0, -2) }),
  'a long trace': (bytes) => ({ traceparent: '0'.repeat(bytes) }),
}

const bodySizes = [64, 512, 2_048, 8_000, 16_384, 65_536, 131_072, 262_000]
const headSizes = [64, 512, 2_048, 8_000, 14_000]

export type HostileRequest = { name: string; request: HttpRequest }

/** `count` requests for one operation; the seed selects them from all possible ones. */
export function hostileRequests(found: OperationCase, count: number, seed: number): HostileRequest[] {
  const { method, path } = found
  const plain = path.replace(/\{[^}]+\}/g, '00000000-0000-7000-8000-000000000000')
  const bodyNames = Object.keys((found.body?.properties ?? {}) as object)
  const json = { 'content-type': 'application/json' }
  const all: HostileRequest[] = []
  const add = (name: string, request: Omit<HttpRequest, 'method'>) =>
    all.push({ name: `${method} ${path}: ${name}`, request: { method, ...request } })
  if (method !== 'GET' && method !== 'DELETE')
    for (const [name, make] of Object.entries(bodies))
      for (const bytes of bodySizes)
        add(`${name}, ${bytes} bytes`, { path: plain, headers: json, body: make(bytes, bodyNames) })
  for (const bytes of headSizes) {
    for (const [name, make] of Object.entries(queries))
      add(`${name}, ${bytes} bytes`, { path: `${plain}?${make(bytes, found.query)}`.slice(0, bytes + 200) })
    for (const [name, make] of Object.entries(headers))
      add(`${name}, ${bytes} bytes`, { path: plain, headers: make(bytes) })
    if (path.includes('{'))
      for (const piece of ['a', '%F0%9F%92%A3', '%2F', '.', '-', '0', '%00'])
        add(`a segment of ${piece}, ${bytes} bytes`, {
          path: path.replace(/\{[^}]+\}/g, repeat(piece, Math.min(bytes, 7_000))),
        })
  }
  // Spread over all of them, with another start for each seed.
  const step = Math.max(1, all.length / count)
  const offset = seed % Math.max(1, Math.floor(step))
  return Array.from(
    { length: Math.min(count, all.length) },
    (_, at) => all[Math.floor(at * step + offset) % all.length]!,
  )
}
