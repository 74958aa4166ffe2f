/** Arbitrary inputs of hostile or mistaken clients: bodies, queries, paths and headers. */
import fc from 'fast-check'
import type { Schema } from './json-schema-arbitrary.ts'

type Json = Record<string, unknown>

const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null

export const namesIn = (schema: Schema | undefined): string[] =>
  isRecord(schema?.properties) ? Object.keys(schema.properties) : []

const deep = (levels: number, open: string, close: string) => open.repeat(levels) + close.repeat(levels)

/** JSON texts that no generator of values can produce. */
const literals = fc.constantFrom(
  '1e400',
  '-1e400',
  '1e-400',
  '9007199254740993',
  '1e30',
  '-0',
  '0.1e1',
  '123456789'.repeat(40),
  'NaN',
  'Infinity',
  '0x10',
  '01',
  '.5',
  '1.',
  '+1',
  "'x'",
  'undefined',
  'True',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\u202e\u0007"',
  '"\\x41"',
  '"a\nb"',
  '"\\',
  '"',
  deep(31, '[', ']'),
  deep(33, '[', ']'),
  deep(5_000, '[', ']'),
  deep(60_000, '{"a":', '').slice(0, 60_000),
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"a":1,"a":2}',
  `"${'a'.repeat(100_000)}"`,
  `[${'0,'.repeat(20_000)}0]`,
  `"${'é'.repeat(50_000)}"`,
)

const texts = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    ' ',
    '\t',
    '0',
    '-1',
    '1e3',
    '١٢',
    '12',
    '1,5',
    'null',
    'true',
    '%00',
    '../../etc/passwd',
    "'; drop table task; --",
    "' or '1'='1",
    '{{7*7}}',
    '<script>',
    'a\r\nX-Evil: 1',
    '\u202eabc',
    'agt_',
    `agt_${'A'.repeat(26)}`,
    '0x0000000000000000000000000000000000000000',
    'x'.repeat(2_000),
    '00000000-0000-0000-0000-000000000000',
    '01890000-0000-7000-8000-00000000000g',
    '__proto__',
    'toString',
  ),
)

const values: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)) },
  { weight: 3, arbitrary: texts.map((text) => JSON.stringify(text)) },
  { weight: 3, arbitrary: literals },
)

/** An object with known and unknown names, each with any value. */
const objectText = (names: readonly string[]): fc.Arbitrary<string> => {
  const more = [
    'idempotency_key',
    'user_id',
    'agent_id',
    'wait',
    'toString',
    '__proto__',
    'constructor',
    '',
    'é',
  ]
  const name = fc.oneof(fc.constantFrom(...names, ...more), fc.string({ maxLength: 12 }))
  return fc
    .array(fc.tuple(name, values), { maxLength: 6 })
    .map((pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`)
}

const corrupted = (text: fc.Arbitrary<string>): fc.Arbitrary<Uint8Array> =>
  fc
    .tuple(
      text,
      fc.nat(),
      fc.nat(255),
      fc.constantFrom('cut', 'flip', 'bom', 'utf16', 'twice', 'comma', 'byte'),
    )
    .map(([whole, at, byte, how]) => {
      const bytes = Buffer.from(whole)
      const place = bytes.length === 0 ? 0 : at % bytes.length
      switch (how) {
        case 'cut':
          return bytes.subarray(0, place)
        case 'flip':
          if (bytes.length > 0) bytes[place] = byte
          return bytes
        case 'bom':
          return Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), bytes])
        case 'utf16':
          return Buffer.from(whole, 'utf16le')
        case 'twice':
          return Buffer.concat([bytes, bytes])
        case 'comma':
          return Buffer.from(whole.replace(/}$/, ',}'))
        default:
          return Buffer.concat([bytes.subarray(0, place), Buffer.of(byte), bytes.subarray(place)])
      }
    })

const tooMany = `{${Array.from({ length: 1_100 }, (_, index) => `"k${index}":0`).join(',')}}`

/** Any body: from nearly valid to no JSON at all. */
export const hostileBodies = (names: readonly string[]): fc.Arbitrary<string | Uint8Array> =>
  fc.oneof(
    { weight: 6, arbitrary: objectText(names) },
    { weight: 2, arbitrary: values },
    { weight: 2, arbitrary: corrupted(objectText(names)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    { weight: 1, arbitrary: fc.constantFrom('', ' ', 'null', '[]', '{}', '""', '0', tooMany) },
  )

export const contentTypes: fc.Arbitrary<string | undefined> = fc.constantFrom(
  'application/json',
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
  'application/json;',
  undefined,
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'json',
  '*/*',
  ';',
  'application/json; charset=utf-16',
  'application/problem+json',
  'application/jsonx',
  'text/json',
  'a/b/c',
)

const percent = (text: string): string => encodeURIComponent(text.toWellFormed())

const queryValue = fc.oneof(
  { weight: 4, arbitrary: texts.map(percent) },
  {
    weight: 3,
    arbitrary: fc.constantFrom('0', '1', '-1', '100', '101', '100000', '100001', '5', '4', '90', '91'),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '%00',
      '%ff',
      '%',
      '%zz',
      '%ud800',
      '%c0%80',
      '9'.repeat(400),
      '1e2',
      '0x10',
      '+1',
      '%2B1',
      '-0',
      '1.0',
      'true',
      'false',
      'yes',
      'TRUE',
      'null',
      '[]',
      '%5B1%5D',
      'x'.repeat(3_000),
      '%F0%9F%92%A9',
      '1%0A',
      '%D9%A1',
    ),
  },
)

/** A query of known and unknown names, some of them repeated. */
export const hostileQueries = (names: readonly string[]): fc.Arbitrary<string> => {
  const odd = [
    'unknown',
    '__proto__',
    'constructor',
    'toString',
    'user_id',
    'agent_id',
    '',
    '%',
    '%00',
    'a.b',
  ]
  const shaped = names.flatMap((name) => [`${name}[]`, `${name}[0]`, `${name}[$ne]`, `${name}%5B%5D`])
  const name = fc.constantFrom(...names, ...names, ...odd, ...shaped)
  const pair = fc.oneof(
    { weight: 9, arbitrary: fc.tuple(name, queryValue).map(([key, value]) => `${key}=${value}`) },
    { weight: 1, arbitrary: fc.constantFrom('&&&', '=', '==', 'a', '?', ';a=b') },
  )
  const repeated = fc
    .tuple(name, fc.array(queryValue, { minLength: 2, maxLength: 4 }))
    .map(([key, list]) => list.map((value) => `${key}=${value}`).join('&'))
  return fc
    .array(fc.oneof({ weight: 3, arbitrary: pair }, repeated), { maxLength: 5 })
    .map((all) => all.join('&'))
}

/** Values in place of an id; the flag marks those that a URL cannot contain. */
export const hostileSegments: fc.Arbitrary<{ text: string; broken: boolean }> = fc.oneof(
  {
    weight: 5,
    arbitrary: texts.filter((text) => text !== '').map((text) => ({ text: percent(text), broken: false })),
  },
  { weight: 2, arbitrary: fc.uuid().map((text) => ({ text, broken: false })) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom('%00', '%2e%2e', '%2F..%2F', 'x'.repeat(1_000), 'x'.repeat(1_100), ';x', '@', '*', '~')
      .map((text) => ({ text, broken: false })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('%', '%ff', '%zz', '%c0%80').map((text) => ({ text, broken: true })),
  },
)

const headerText = fc.stringMatching(/^[\x20-\x7e]{0,60}$/).map((text) => text.trim())
const keys = fc.oneof(
  fc.uuid(),
  headerText,
  fc.constantFrom(
    '',
    ' ',
    'a b',
    'k'.repeat(255),
    'k'.repeat(256),
    'k'.repeat(2_000),
    'schlüssel',
    'a,b',
    '"a"',
    '\t',
  ),
)

/** Headers that an operation reads, with invalid values. */
export const hostileHeaders: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    'idempotency-key': keys,
    'last-event-id': fc.oneof(keys, fc.constantFrom('-1', '0', '9'.repeat(18), '9'.repeat(30), '1.5')),
    'x-request-id': fc.oneof(keys, fc.constantFrom('short', 'x'.repeat(64), 'x'.repeat(65), 'a b c d e f')),
    traceparent: fc.oneof(
      headerText,
      fc.constantFrom(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, '00-0-0-00'),
    ),
    accept: fc.constantFrom(
      'application/json',
      'application/problem+json',
      'text/html',
      '*/*',
      '',
      ';;q=x',
      'a',
    ),
    origin: fc.constantFrom('null', 'https://evil.example', 'http://localhost', '', 'x'),
    'accept-encoding': fc.constantFrom('gzip, br', 'identity;q=0', '*;q=0'),
    'content-encoding': fc.constantFrom('gzip', 'br', 'identity'),
    'if-none-match': fc.constantFrom('*', '"x"', ''),
    'x-forwarded-proto': fc.constantFrom('https', 'javascript', ''),
    'x-http-method-override': fc.constantFrom('DELETE', 'PUT'),
    range: fc.constantFrom('bytes=0-1', 'bytes=-1', 'x'),
    expect: fc.constantFrom('100-continue', '200-ok'),
  },
  { requiredKeys: [] },
)
