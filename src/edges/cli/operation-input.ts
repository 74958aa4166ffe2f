import { readFileSync } from 'node:fs'
import { parseJson } from '#sdk/json.ts'
import type { Command, Field } from './commands.ts'
import { UsageError } from './terminal.ts'

type Input = Record<string, unknown>
/** Values by the attribute names of commander, which are in camel case. */
export type Options = Readonly<Record<string, unknown>>

const attributeOf = ({ flag }: Field): string =>
  flag.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** Makes the input of a command; arguments and flags win over the fields of the JSON document. */
export function inputOf({ fields }: Command, options: Options, positional: readonly string[]): Input {
  const input: Input = typeof options.json === 'string' ? readDocument(options.json) : {}
  const paths = fields.filter(({ isPath }) => isPath)
  for (const [index, { name }] of paths.entries()) {
    const value = positional[index]
    if (value !== undefined) input[name] = value
    else if (input[name] === undefined) throw new UsageError(`The argument <${name}> is missing`)
  }
  for (const field of fields) {
    const value = options[attributeOf(field)]
    if (field.isPath || value === undefined) continue
    input[field.name] = Array.isArray(value)
      ? value.map((each) => parseValue(field, each))
      : parseValue(field, value)
  }
  if (options.wait !== undefined) input.wait = options.wait
  if (options.timeout !== undefined) input.timeout = numberOf(String(options.timeout), /^\d+$/)
  return input
}

/** A text that does not fit the type stays text, so that the gateway names the mistake. */
function parseValue({ type }: Field, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (type === 'integer') return numberOf(value, /^-?\d{1,15}$/)
  if (type === 'number') return numberOf(value, /^-?\d{1,15}(?:\.\d{1,15})?$/)
  if (type === 'boolean') return value === 'true' ? true : value === 'false' ? false : value
  const parsed = type === 'json' ? parseJson(value) : undefined
  return parsed === undefined ? value : parsed
}

/** The value of an option that counts something. */
export function countOf(flag: string, value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,6}$/.test(String(value))) return Number(value)
  throw new UsageError(`${flag} takes a whole number, not ${value}`)
}

const numberOf = (text: string, form: RegExp): unknown => (form.test(text) ? Number(text) : text)

/** Reads the value of --json: `@file` names a file, `@-` the standard input, and any other value is the JSON. */
function readDocument(given: string): Input {
  if (!given.startsWith('@') && !given.startsWith('{'))
    throw new UsageError('--json takes @file, @- or a JSON object; without a value it prints JSON')
  const text = given.startsWith('@') ? readText(given.slice(1)) : given
  const document = parseJson(text)
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new UsageError('The document of --json is not a JSON object')
  return document as Input
}

function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`)
  }
}
