import { type Fields, isObject, isPlain, printable } from './cell-text.ts'
import { eventLine, isEvent } from './event-line.ts'
import { answerScreen, type Layout } from './screen.ts'
import { cut } from './table-text.ts'
import { isTask, taskScreen } from './task-screen.ts'

/** `wide` prints every field as the gateway sent it, in lines of any length. */
export type Form = 'table' | 'wide' | 'json' | 'jsonl'

export const isJson = (form: Form): boolean => form === 'json' || form === 'jsonl'

export function answerText(answer: unknown, form: Form, layout: Layout): string {
  if (form === 'json') return `${JSON.stringify(answer, null, 2)}\n`
  if (form === 'jsonl')
    return itemsOf(answer)
      .map((item) => `${JSON.stringify(item)}\n`)
      .join('')
  return `${(form === 'wide' ? blockOf(answer) : screenOf(answer, layout)).join('\n')}\n`
}

function screenOf(answer: unknown, layout: Layout): string[] {
  if (isTask(answer)) return taskScreen(answer, layout)
  const events = isObject(answer) && Array.isArray(answer.events) ? answer.events : []
  if (events.length === 0 || !events.every(isEvent)) return answerScreen(answer, layout)
  return events.map((event) => cut(`${printable(event.id)}  ${eventLine(event)}`, layout.width))
}

function itemsOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer
  const lists = isObject(answer) ? Object.values(answer).filter(Array.isArray) : []
  return lists.length === 1 && lists[0] && !('task_id' in Object(answer)) ? lists[0] : [answer]
}

function blockOf(value: unknown): string[] {
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

const wholeCell = (value: unknown): string => printable(isPlain(value) ? value : JSON.stringify(value))

function tableOf(rows: readonly Fields[]): string[] {
  if (rows.length === 0) return ['none']
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const lines = [
    names.map((name) => name.toUpperCase()),
    ...rows.map((row) => names.map((name) => wholeCell(row[name]))),
  ]
  const widths = names.map((_, index) => Math.max(...lines.map((line) => (line[index] ?? '').length)))
  return lines.map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
