import { PorticoError } from '#sdk/errors.ts'

export type Form = 'table' | 'json' | 'jsonl'
type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isPlain = (value: unknown): boolean => typeof value !== 'object' || value === null

/** Names of tokens and messages come from strangers, so none of their characters may control the terminal. */
export const printable = (value: unknown): string =>
  (value === null || value === undefined ? '-' : String(value)).replace(/\p{C}/gu, ' ')

export function answerText(answer: unknown, form: Form): string {
  if (form === 'json') return `${JSON.stringify(answer, null, 2)}\n`
  if (form === 'table') return `${blockOf(answer).join('\n')}\n`
  const lists = isObject(answer) ? Object.values(answer).filter(Array.isArray) : []
  const items = Array.isArray(answer)
    ? answer
    : lists.length === 1 && !('task_id' in Object(answer))
      ? lists[0]
      : undefined
  return (items ?? [answer]).map((item) => `${JSON.stringify(item)}\n`).join('')
}

export function blockOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.every(isObject) ? tableOf(value) : value.map(printable)
  if (!isObject(value)) return [printable(value)]
  const entries = Object.entries(value)
  const plain = entries.filter(([, field]) => isPlain(field))
  const width = Math.max(0, ...plain.map(([name]) => name.length))
  const lines = plain.map(([name, field]) => `${name.padEnd(width)}  ${printable(field)}`)
  for (const [name, field] of entries) {
    if (isPlain(field) || (Array.isArray(field) && field.length === 0)) continue
    lines.push('', `${name}:`, ...blockOf(field).map((line) => (line === '' ? '' : `  ${line}`)))
  }
  return lines
}

function tableOf(rows: readonly Fields[]): string[] {
  if (rows.length === 0) return ['none']
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) =>
    rows.every((row) => isPlain(row[name])),
  )
  const lines = [
    names.map((name) => name.toUpperCase()),
    ...rows.map((row) => names.map((name) => printable(row[name]))),
  ]
  const widths = names.map((_, index) => Math.max(...lines.map((line) => (line[index] ?? '').length)))
  return lines.map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Formats a failure for `err`; the JSON has every field that the gateway sent. */
export function errorText(error: unknown, form: Form): string {
  if (!(error instanceof PorticoError)) return `portico: ${error instanceof Error ? error.message : error}\n`
  const { status, code, detail, retryable, outcome, request_id, errors, extras } = error
  if (form !== 'table')
    return `${JSON.stringify({ status, code, detail, retryable, outcome, request_id, errors, extras })}\n`
  const issues = errors.map(({ loc, msg }) => `  ${printable(loc.join('.'))}: ${printable(msg)}\n`)
  const hint =
    code === 'unauthorized'
      ? '  portico init registers a key pair on this machine, portico login signs a person in\n'
      : ''
  return `portico: ${code}: ${printable(detail)}\n${issues.join('')}${hint}`
}
