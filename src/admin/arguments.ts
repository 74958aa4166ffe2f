import { parseArgs } from 'node:util'

/** Parses the operator's command line. The message of a `UsageError` is shown to the operator. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export type OptionKind = 'string' | 'boolean'
export type Usage = {
  name: string
  /** The arguments after the name: `<task>`, or `[<statement>]` for an optional one. */
  positionals?: readonly string[]
  options?: Readonly<Record<string, OptionKind>>
}
export type Arguments = {
  positional(name: string): string
  optional(name: string): string | undefined
  text(option: string): string | undefined
  flag(option: string): boolean
}

const generalOptions: Readonly<Record<string, OptionKind>> = {
  by: 'string',
  why: 'string',
  json: 'boolean',
}

export type Parsed<U extends Usage> = {
  usage: U
  by: string | undefined
  why: string | undefined
  json: boolean
  args: Arguments
}

/** Returns the longest command name that the words start with: `tasks end <task>` before `tasks`. */
function commandOf<U extends Usage>(words: readonly string[], commands: readonly U[]): U | undefined {
  const matches = ({ name }: U) => name.split(' ').every((word, at) => words[at] === word)
  return commands.filter(matches).toSorted((a, b) => b.name.length - a.name.length)[0]
}

const isOptional = (name: string) => name.startsWith('[')
const stripBrackets = (name: string) => name.replace(/[[\]<>]/g, '')

export function readArguments<U extends Usage>(argv: readonly string[], commands: readonly U[]): Parsed<U> {
  const usage = commandOf(argv, commands)
  if (!usage)
    throw new UsageError(`There is no command ${argv.slice(0, 2).join(' ')}. Run without arguments for help.`)
  const { positionals: names = [] } = usage
  const kinds = { ...generalOptions, ...usage.options }
  const options = Object.fromEntries(Object.entries(kinds).map(([name, type]) => [name, { type }]))
  const { values, positionals } = parse(argv.slice(usage.name.split(' ').length), options)
  const needed = names.filter((name) => !isOptional(name))
  if (positionals.length < needed.length || positionals.length > names.length)
    throw new UsageError(`Usage: ${usageLine(usage)}`)
  const given = new Map(names.map((name, at) => [stripBrackets(name), positionals[at]]))
  const text = (option: string) => {
    const value = values[option]
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
  }
  return {
    usage,
    by: text('by'),
    why: text('why'),
    json: values.json === true,
    args: {
      positional(name) {
        const value = given.get(name)
        if (value === undefined) throw new UsageError(`Usage: ${usageLine(usage)}`)
        return value
      },
      optional: (name) => given.get(name),
      text,
      flag: (option) => values[option] === true,
    },
  }
}

function parse(args: string[], options: Record<string, { type: OptionKind }>) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

export function usageLine({ name, positionals = [], options = {} }: Usage): string {
  const flags = Object.entries(options).map(([option, kind]) =>
    kind === 'string' ? `[--${option} <${option}>]` : `[--${option}]`,
  )
  return [name, ...positionals, ...flags].join(' ')
}

export function oneOf<const V extends string>(
  what: string,
  values: readonly V[],
  given: string | undefined,
): V {
  const found = values.find((value) => value === given)
  if (found === undefined) throw new UsageError(`${what} must be one of ${values.join(', ')}.`)
  return found
}
