import { decimalText, type Fields, isObject, printable, timeText, usdText } from './cell-text.ts'
import { inFlags } from './flag-language.ts'
import { movedText, statusText } from './task-screen.ts'

/** Says in one line what an event reports: when, what, and how much. */

const words = (value: unknown): string => printable(value).replaceAll('_', ' ')

/** The fields that describe what happened, in the order of a sentence. */
const describing = [
  'title',
  'asset',
  'symbol',
  'side',
  'size',
  'outcome',
  'price',
  'amount_usd',
  'fee',
  'status',
  'cause',
  'decision',
  'reason',
  'failure_reason',
  'summary',
  'message',
]

export const isEvent = (value: unknown): value is Fields =>
  isObject(value) && 'type' in value && 'created_at' in value && isObject(value.data)

export const eventLine = (event: unknown, now = new Date()): string =>
  lineOf((isObject(event) ? event : {}) as Fields, now).join('  ')

function lineOf({ type, data, created_at }: Fields, now: Date): string[] {
  const fields = isObject(data) ? data : {}
  const isTask = String(type).startsWith('task.')
  const parts = isTask ? taskParts(fields) : [words(String(type).replace('.', ' ')), describedText(fields)]
  return [clockText(created_at, now), ...parts].filter((part) => part !== '')
}

/**
 * Returns a function that prints an event, or undefined where the last line of the same task said the same: a task
 * reports more changes than a person sees, such as a signature between two states that are both called running.
 */
export function createChangeLines(): (event: unknown, now?: Date) => string | undefined {
  const said = new Map<unknown, string>()
  return (event, now = new Date()) => {
    const fields = (isObject(event) ? event : {}) as Fields
    const [time, ...parts] = lineOf(fields, now)
    const text = parts.join('  ')
    const id = isObject(fields.data) ? fields.data.task_id : undefined
    if (id !== undefined && said.get(id) === text) return undefined
    if (fields.type === 'task.created' || fields.type === 'task.updated') said.set(id, text)
    else said.delete(id)
    return [time, ...parts].join('  ')
  }
}

function taskParts(task: Fields): string[] {
  const { kind, error, message, status } = task
  const failure = isObject(error) ? inFlags(`${words(error.code)}: ${printable(error.message)}`) : ''
  const moved = movedText(task)
  const isWaiting = status === 'pending' || status === 'running'
  return [
    words(kind),
    statusText(task),
    moved === '' ? amountText(task.result) : moved,
    failure,
    isWaiting && isObject(task.approval) ? inFlags(printable(message)) : '',
  ]
}

/** The amount of a result whose balances the chain does not report, such as a transfer at a venue. */
function amountText(result: unknown): string {
  const { amount_usd } = isObject(result) ? result : {}
  return amount_usd === undefined || amount_usd === null ? '' : usdText(amount_usd)
}

const describedText = (data: Fields): string =>
  describing
    .flatMap((name) => {
      const value = data[name]
      if (value === null || value === undefined || typeof value === 'object') return []
      if (name.endsWith('_usd')) return usdText(value)
      if (name === 'price') return `at ${decimalText(value)}`
      if (name === 'fee')
        return `fee ${decimalText(value)} ${data.fee_token === undefined ? '' : printable(data.fee_token)}`.trimEnd()
      return name === 'size' ? decimalText(value) : words(value)
    })
    .join(' ')

const twoDigits = (value: number): string => String(value).padStart(2, '0')

/** The time on this machine, with its day where that is another one. */
function clockText(at: unknown, now: Date): string {
  const time = new Date(String(at))
  if (time.toDateString() !== now.toDateString()) return timeText(at, now.getTime())
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(':')
}
