import type { Command as Program } from 'commander'
import { alternatives, nearest } from '#kernel/contract/nearest-names.ts'
import { PorticoError } from '#sdk/errors.ts'
import { type Form, isJson } from './answer-text.ts'
import { printable } from './cell-text.ts'
import type { Command } from './commands.ts'
import { inFlags } from './flag-language.ts'
import { wrapped } from './table-text.ts'
import { type Terminal, UsageError } from './terminal.ts'

/** Formats a failure for `err`; the JSON has every field that the gateway sent. */
export function errorText(error: unknown, form: Form, command?: Command): string {
  if (!(error instanceof PorticoError))
    return failureText(
      error instanceof Error ? error.message : String(error),
      form,
      error instanceof UsageError ? 'usage' : 'unexpected',
    )
  const { status, code, detail, retryable, outcome, request_id, errors, extras } = error
  if (isJson(form))
    return `${JSON.stringify({ status, code, detail, retryable, outcome, request_id, errors, extras })}\n`
  const issues = errors.map(({ loc: [, ...path], msg }) => {
    const field = command?.fields.find(({ name }) => name === path[0])
    const name =
      field && path.length === 1 ? (field.isPath ? `<${field.name}>` : `--${field.flag}`) : path.join('.')
    return `  ${printable(name)}: ${printable(inFlags(msg, command))}\n`
  })
  const next = hints[code] ?? nextCall(extras)
  return `portico: ${code}: ${printable(inFlags(detail, command))}\n${issues.join('')}${next ? `  ${next}\n` : ''}`
}

/** A failure before any call: a wrong command line, or a file that cannot be read. */
function failureText(message: string, form: Form, code = 'usage'): string {
  return isJson(form)
    ? `${JSON.stringify({ status: 0, code, detail: message, retryable: false, errors: [] })}\n`
    : `portico: ${printable(message)}\n`
}

const hints: Readonly<Record<string, string>> = {
  unauthorized: 'portico init registers a key pair on this machine, portico login signs a person in',
  connection_failed:
    'Is the gateway running? portico up (or npm start) starts one here; --base-url names another address',
}

const nextCall = ({ next_call }: Readonly<Record<string, unknown>>): string | undefined =>
  typeof next_call === 'string' ? `next: ${printable(inFlags(next_call))}` : undefined

const unknownOption = /^error: unknown option '(--[\w-]+)/

/** The words of commander about a wrong command line, with the options that may have been meant. */
export function usageText(text: string, form: Form, verb?: Program): string {
  const flag = unknownOption.exec(text)?.[1]
  if (flag === undefined || !verb) return failureText(text.replace(/^error: /, '').trim(), form)
  const flags = verb.options.flatMap(({ long }) => long ?? [])
  const meant = nearest(flag, flags)
  const names = [...ancestors(verb), verb.name()].join(' ')
  const hint = meant.length > 0 ? `; did you mean ${alternatives(meant)}?` : ''
  return failureText(`unknown option ${flag}${hint} (${names} --help lists them)`, form)
}

const ancestors = ({ parent }: Program): string[] => (parent ? [...ancestors(parent), parent.name()] : [])

/** A person reads an error in lines that end between two words. */
export function fitted(text: string, { isInteractive, columns }: Terminal): string {
  if (!isInteractive || !columns || text.startsWith('{')) return text
  return text
    .split('\n')
    .flatMap((line) => {
      const indent = /^ */.exec(line)?.[0] ?? ''
      return wrapped(line.trimStart(), columns - indent.length).map((part) => indent + part)
    })
    .join('\n')
}
