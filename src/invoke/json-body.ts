import { Fault } from '#kernel/contract/fault.ts'
import type { NumberSources } from '#kernel/wire/json.ts'

/**
 * JSON.parse silently keeps the last of two equal keys and loses the digits of a number; for a body that moves
 * money both are wrong. This parser rejects duplicate and poisonous keys, bounds depth, keys and values, and
 * keeps number sources. The bounds limit the cost of validating a body with any content.
 */

export const depthMax = 32
export const keysMax = 1_000
/** The most values of a body; objects and lists count as values too. */
export const valuesMax = 5_000
export const keyLengthMax = 256

const space = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
// The loop of this pattern is unrolled, so that a long string costs no backtracking.
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these inside a string
const string = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y
const words = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const

type Cursor = { text: string; at: number; keys: number; values: number; sources: NumberSources }

const decodeError = (reason: string): Fault =>
  new Fault('validation', `JSON decode error: ${reason}`, {
    issues: [
      {
        location: 'body',
        path: [],
        msg: `JSON decode error: ${reason}`,
        type: 'json_invalid',
        ctx: { error: reason },
      },
    ],
  })

/** Patterns of text that JSON does not allow, each with the hint that the error message gives. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [/^'/, 'use double quotes'],
  [/^[}\]]/, 'remove the comma before it'],
  [/^(?:True|False|None|undefined)\b/, 'write true, false or null'],
  [/^[+-]?(?:NaN|Infinity)\b/, 'a number has digits only'],
  [/^\+/, 'a number has no sign +'],
  [/^\./, 'a number starts with a digit'],
  [/^\d/, 'a number has no leading zero'],
  [/^\/[/*]/, 'JSON has no comments'],
  [/^_/, 'a number has no separators'],
  [/^[A-Za-z]/, 'use double quotes around text'],
  [/^$/, 'the body ends too early'],
]
const remedyCharsMax = 16

function expected(what: string, { text, at }: Cursor): Fault {
  const rest = text.slice(at, at + remedyCharsMax)
  const remedy = remedies.find(([pattern]) => pattern.test(rest))?.[1]
  return decodeError(`Expecting ${what} at character ${at}${remedy === undefined ? '' : `: ${remedy}`}`)
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Parses the JSON of a body; an empty body gives undefined, with any content type. */
export function parseJson(bytes: Uint8Array, sources: NumberSources): unknown {
  if (bytes.length === 0) return undefined
  const cursor: Cursor = { text: decode(bytes), at: 0, keys: 0, values: 0, sources }
  const value = readValue(cursor, 0, undefined, '')
  skipSpace(cursor)
  if (cursor.at < cursor.text.length) throw decodeError(`Extra data at character ${cursor.at}`)
  return value
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw decodeError(
      isGzip(bytes) ? 'The body is compressed; send it without gzip' : 'The body is not UTF-8',
    )
  }
}

const isGzip = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b

function match(cursor: Cursor, pattern: RegExp): string | undefined {
  pattern.lastIndex = cursor.at
  const found = pattern.exec(cursor.text)?.[0]
  if (found !== undefined) cursor.at += found.length
  return found
}

function skipSpace(cursor: Cursor): string | undefined {
  match(cursor, space)
  return cursor.text[cursor.at]
}

function readValue(cursor: Cursor, depth: number, holder: object | undefined, key: string): unknown {
  const first = skipSpace(cursor)
  if (++cursor.values > valuesMax) throw decodeError(`More than ${valuesMax} values`)
  if (first === '{' || first === '[') {
    if (depth >= depthMax) throw decodeError(`Nested deeper than ${depthMax} levels`)
    cursor.at++
    return first === '{' ? readObject(cursor, depth + 1) : readArray(cursor, depth + 1)
  }
  if (first === '"') return readString(cursor)
  for (const [word, value] of words) {
    if (!cursor.text.startsWith(word, cursor.at)) continue
    cursor.at += word.length
    return value
  }
  const source = match(cursor, number)
  if (source === undefined) throw expected('value', cursor)
  if (holder) storeSource(cursor.sources, holder, key, source)
  return Number(source)
}

function storeSource(sources: NumberSources, holder: object, key: string, source: string): void {
  const map = sources.get(holder)
  if (map) map.set(key, source)
  else sources.set(holder, new Map([[key, source]]))
}

function readString(cursor: Cursor): string {
  const found = match(cursor, string)
  if (found === undefined) {
    const rule = 'a string ends with a double quote and takes no line break'
    throw decodeError(`Invalid string at character ${cursor.at}: ${rule}`)
  }
  return found.includes('\\') ? (JSON.parse(found) as string) : found.slice(1, -1)
}

function hasMore(cursor: Cursor, end: string): boolean {
  const next = skipSpace(cursor)
  if (next !== ',' && next !== end) throw expected(`',' or '${end}'`, cursor)
  cursor.at++
  return next === ','
}

function readArray(cursor: Cursor, depth: number): unknown[] {
  const items: unknown[] = []
  if (skipSpace(cursor) === ']') {
    cursor.at++
    return items
  }
  do {
    items.push(readValue(cursor, depth, items, String(items.length)))
  } while (hasMore(cursor, ']'))
  return items
}

function readObject(cursor: Cursor, depth: number): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  if (skipSpace(cursor) === '}') {
    cursor.at++
    return fields
  }
  do {
    const key = readKey(cursor, fields)
    const value = readValue(cursor, depth, fields, key)
    if (key === 'constructor' && isObject(value) && Object.hasOwn(value, 'prototype')) {
      throw decodeError("The key 'constructor.prototype' is not allowed")
    }
    fields[key] = value
  } while (hasMore(cursor, '}'))
  return fields
}

function readKey(cursor: Cursor, fields: object): string {
  if (skipSpace(cursor) !== '"') throw expected('property name in double quotes', cursor)
  const key = readString(cursor)
  if (skipSpace(cursor) !== ':') throw expected("':'", cursor)
  cursor.at++
  if (++cursor.keys > keysMax) throw decodeError(`More than ${keysMax} keys`)
  if (key.length > keyLengthMax) throw decodeError(`A key is longer than ${keyLengthMax} characters`)
  if (key === '__proto__') throw decodeError("The key '__proto__' is not allowed")
  if (Object.hasOwn(fields, key)) throw duplicateKey(key)
  return key
}

const duplicateKey = (key: string): Fault =>
  decodeError(`Duplicate key ${JSON.stringify(key.slice(0, 64))}: send it once`)

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
