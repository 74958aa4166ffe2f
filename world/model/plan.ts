import { randomBytes } from 'node:crypto'
import { tokensOf } from './conversation.ts'
import type { ScriptedCall, Step, StopReason } from './script.ts'

/** What one turn of a script does, the same for both interfaces and with or without a stream. */

export type PlannedCall = { id: string | undefined; name: string; index: number | undefined; order: number }
export type Action =
  | { type: 'text' | 'refusal' | 'thinking'; text: string }
  | { type: 'call'; call: PlannedCall }
  | { type: 'arguments'; call: PlannedCall; text: string }
  | { type: 'call_end'; call: PlannedCall }
  | { type: 'stop'; reason: StopReason }
  | { type: 'pause'; ms: number }
  | { type: 'reset' }
  | { type: 'close' }
  | { type: 'error'; status: number; message: string }
  | { type: 'raw'; text: string }
  | { type: 'empty' }

export type Wire = { lineEnd: string; splitBytes: number | undefined; hasComments: boolean }
export type Usage = { inputTokens: number; outputTokens: number }
export type Failure = Extract<Step, { type: 'fail' }>
export type Plan = {
  delayMs: number
  failures: Failure[]
  actions: Action[]
  /** Undefined: not reported. */
  usage: Usage | undefined
  wire: Wire
}

const pieceCharacters = 6
const lineEnds = { lf: '\n', crlf: '\r\n', cr: '\r' }

/** About a token each; a surrogate pair stays whole. */
const piecesOf = (text: string, size = pieceCharacters): string[] => {
  const characters = [...text]
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(''),
  )
}

const argumentsOf = ({ arguments: value, arguments_text: text }: ScriptedCall): string =>
  text ?? JSON.stringify(value ?? {})

const newId = () => randomBytes(12).toString('hex')

/** Removes what the conversation already has of the answer. */
const withoutPrefix = (prefix: string) => {
  let rest = prefix
  return (text: string): string => {
    if (text.startsWith(rest)) {
      const left = text.slice(rest.length)
      rest = ''
      return left
    }
    if (!rest.startsWith(text)) return text
    rest = rest.slice(text.length)
    return ''
  }
}

export type PlanInput = {
  steps: readonly Step[]
  prefix: string
  inputTokens: number
  /** How ids of calls begin: `call_` or `toolu_`. */
  idPrefix: string
}

export const planTurn = ({ steps, prefix, inputTokens, idPrefix }: PlanInput): Plan => {
  const actions: Action[] = []
  const failures: Failure[] = []
  const wire: Wire = { lineEnd: '\n', splitBytes: undefined, hasComments: false }
  let delayMs = 0
  let usageStep: Extract<Step, { type: 'usage' }> = { type: 'usage' }
  let written = ''
  let calls = 0
  const left = withoutPrefix(prefix)

  const pause = (ms: number | undefined) => {
    if (ms) actions.push({ type: 'pause', ms })
  }
  const addCalls = ({
    calls: scripted,
    interleave,
    piece,
    pace_ms: ms,
  }: Extract<Step, { type: 'tools' }>) => {
    const planned = scripted.map((each) => ({
      call: { id: each.id ?? `${idPrefix}${newId()}`, name: each.name, index: each.index, order: calls++ },
      pieces: piecesOf(argumentsOf(each), piece),
    }))
    for (const { pieces } of planned) written += pieces.join('')
    if (!interleave) {
      for (const { call, pieces } of planned) {
        actions.push({ type: 'call', call })
        for (const text of pieces) {
          actions.push({ type: 'arguments', call, text })
          pause(ms)
        }
        actions.push({ type: 'call_end', call })
      }
      return
    }
    for (const { call } of planned) actions.push({ type: 'call', call })
    const rounds = Math.max(0, ...planned.map(({ pieces }) => pieces.length))
    for (let at = 0; at < rounds; at++)
      for (const { call, pieces } of planned) {
        const text = pieces[at]
        if (text === undefined) continue
        actions.push({ type: 'arguments', call, text })
        pause(ms)
      }
    for (const { call } of planned) actions.push({ type: 'call_end', call })
  }

  for (const step of steps) {
    if (step.type === 'text' || step.type === 'refusal' || step.type === 'thinking') {
      const text = step.type === 'text' ? left(step.text) : step.text
      written += text
      for (const piece of piecesOf(text, step.piece)) {
        actions.push({ type: step.type, text: piece })
        pause(step.pace_ms)
      }
    } else if (step.type === 'tools') addCalls(step)
    else if (step.type === 'stop')
      for (let at = 0; at < (step.times ?? 1); at++) actions.push({ type: 'stop', reason: step.reason })
    else if (step.type === 'delay') delayMs += step.ms
    else if (step.type === 'fail') failures.push(step)
    else if (step.type === 'usage') usageStep = step
    else if (step.type === 'wire') {
      wire.lineEnd = lineEnds[step.line_end ?? 'lf']
      wire.splitBytes = step.split_bytes
      wire.hasComments = step.comments ?? false
    } else if (step.type === 'error')
      actions.push({ type: 'error', status: step.status, message: step.message ?? 'The model failed' })
    else actions.push(step)
  }
  if (!actions.some(({ type }) => ['stop', 'close', 'reset', 'error'].includes(type))) {
    const isRefusal = steps.some(({ type }) => type === 'refusal')
    actions.push({ type: 'stop', reason: calls > 0 ? 'tools' : isRefusal ? 'refusal' : 'end' })
  }
  const usage: Usage = {
    inputTokens: usageStep.input ?? inputTokens,
    outputTokens: usageStep.output ?? tokensOf(written),
  }
  return { delayMs, failures, actions, usage: usageStep.absent ? undefined : usage, wire }
}
