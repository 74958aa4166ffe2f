import { type Fields, HttpError, numberField, rejectUnknownFields, textField } from '#world/router.ts'

/** Scripts of the local model: what it answers turn by turn, and which faults its answers have. */

export const stopReasons = ['end', 'tools', 'length', 'refusal'] as const
export type StopReason = (typeof stopReasons)[number]

export type ScriptedCall = {
  name: string
  /** Written as JSON. */
  arguments?: unknown
  /** Written as it is, whatever it is. */
  arguments_text?: string
  id?: string
  /** The index on the wire; absent: the next one. */
  index?: number
}
/** How fast a text or arguments come: characters of a piece, and the pause after it. */
type Pace = { piece?: number; pace_ms?: number }
export type Step =
  | ({ type: 'text' | 'refusal' | 'thinking'; text: string } & Pace)
  | ({ type: 'tools'; calls: ScriptedCall[]; interleave?: boolean } & Pace)
  /** The reason of the end, written `times` times; absent: `tools` after a call, `end` otherwise. */
  | { type: 'stop'; reason: StopReason; times?: number }
  /** Before the first byte of the answer. */
  | { type: 'delay'; ms: number }
  /** No bytes within the answer. */
  | { type: 'pause'; ms: number }
  /** The connection is reset. */
  | { type: 'reset' }
  /** The body ends here, without a reason. */
  | { type: 'close' }
  /** Instead of an answer, so many times. */
  | { type: 'fail'; status: number; times?: number; retry_after_seconds?: number; html?: boolean }
  /** An error event after the answer has begun. */
  | { type: 'error'; status: number; message?: string }
  /** Bytes as they are. */
  | { type: 'raw'; text: string }
  /** A chunk without a choice, or a ping. */
  | { type: 'empty' }
  | { type: 'usage'; absent?: boolean; input?: number; output?: number }
  | { type: 'wire'; line_end?: 'lf' | 'crlf' | 'cr'; split_bytes?: number; comments?: boolean }
type StepType = Step['type']

export type Script = {
  name: string
  /** Answers conversations with the model `local` whose last message of a user contains this. */
  contains?: string
  turns: Step[][]
  /** After the last turn it begins again; otherwise the default answer follows. */
  repeat: boolean
  /** The message after which turns are counted. */
  turns_from: 'last_user' | 'start'
}

const turnsMax = 100
const stepsMax = 200
const callsMax = 200
const textMax = 300_000
const msMax = 600_000
const timesMax = 1_000
const tokensMax = 100_000_000

const oneOf = <const V extends string>(fields: Fields, name: string, values: readonly V[]): V => {
  const found = values.find((each) => each === fields[name])
  if (found === undefined) throw new HttpError(400, `${name} must be one of ${values.join(', ')}.`)
  return found
}
const flag = (fields: Fields, name: string): boolean => {
  if (typeof fields[name] !== 'boolean') throw new HttpError(400, `${name} must be true or false.`)
  return fields[name]
}
const whole = (fields: Fields, name: string, min: number, max: number) => {
  if (!Number.isInteger(fields[name]))
    throw new HttpError(400, `${name} must be a whole number from ${min} to ${max}.`)
  return numberField(fields, name, min, max)
}
const anyText = (fields: Fields, name: string): string => {
  const value = fields[name]
  if (typeof value === 'string' && value.length <= textMax) return value
  throw new HttpError(400, `${name} must be text of at most ${textMax} characters.`)
}

type Check = (fields: Fields, name: string) => unknown
const ms: Check = (fields, name) => numberField(fields, name, 0, msMax)
const times: Check = (fields, name) => whole(fields, name, 1, timesMax)
const status: Check = (fields, name) => whole(fields, name, 400, 599)
const pace = { piece: (fields: Fields, name: string) => whole(fields, name, 1, textMax), pace_ms: ms }

const callFields: Record<string, Check> = {
  name: (fields, name) => textField(fields, name),
  arguments: () => {},
  arguments_text: anyText,
  id: (fields, name) => textField(fields, name),
  index: (fields, name) => whole(fields, name, 0, 1_000),
}

const checkFields = (fields: Fields, checks: Record<string, Check>, required: readonly string[]) => {
  rejectUnknownFields(fields, ['type', ...Object.keys(checks)])
  for (const [name, check] of Object.entries(checks))
    if (required.includes(name) || fields[name] !== undefined) check(fields, name)
}

const listOf = (fields: Fields, name: string, max: number): unknown[] => {
  const value = fields[name]
  if (Array.isArray(value) && value.length <= max) return value
  throw new HttpError(400, `${name} must be a list of at most ${max}.`)
}
const record = (value: unknown, what: string): Fields => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new HttpError(400, `${what} must be a JSON object.`)
}

const calls: Check = (fields, name) => {
  for (const call of listOf(fields, name, callsMax)) checkFields(record(call, 'A call'), callFields, ['name'])
}

const stepFields: Record<StepType, { checks: Record<string, Check>; required?: readonly string[] }> = {
  text: { checks: { text: anyText, ...pace }, required: ['text'] },
  refusal: { checks: { text: anyText, ...pace }, required: ['text'] },
  thinking: { checks: { text: anyText, ...pace }, required: ['text'] },
  tools: { checks: { calls, interleave: flag, ...pace }, required: ['calls'] },
  stop: {
    checks: { reason: (fields, name) => oneOf(fields, name, stopReasons), times },
    required: ['reason'],
  },
  delay: { checks: { ms }, required: ['ms'] },
  pause: { checks: { ms }, required: ['ms'] },
  reset: { checks: {} },
  close: { checks: {} },
  fail: {
    checks: {
      status,
      times,
      retry_after_seconds: (fields, name) => numberField(fields, name, 0, 86_400),
      html: flag,
    },
    required: ['status'],
  },
  error: { checks: { status, message: anyText }, required: ['status'] },
  raw: { checks: { text: anyText }, required: ['text'] },
  empty: { checks: {} },
  usage: {
    checks: {
      absent: flag,
      input: (fields, name) => whole(fields, name, 0, tokensMax),
      output: (fields, name) => whole(fields, name, 0, tokensMax),
    },
  },
  wire: {
    checks: {
      line_end: (fields, name) => oneOf(fields, name, ['lf', 'crlf', 'cr']),
      split_bytes: (fields, name) => whole(fields, name, 1, 65_536),
      comments: flag,
    },
  },
}

const readStep = (value: unknown): Step => {
  const fields = record(value, 'A step')
  const type = oneOf(fields, 'type', Object.keys(stepFields) as StepType[])
  const { checks, required = [] } = stepFields[type]
  checkFields(fields, checks, required)
  return fields as Step
}

/** Parses a script that a control call registers; anything misspelt is rejected. */
export const readScript = (fields: Fields): Script => {
  rejectUnknownFields(fields, ['name', 'contains', 'turns', 'repeat', 'turns_from'])
  const name = textField(fields, 'name', 64)
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))
    throw new HttpError(400, 'name must be of small letters, digits and hyphens.')
  const turns = listOf(fields, 'turns', turnsMax).map((turn) =>
    listOf({ turn }, 'turn', stepsMax).map(readStep),
  )
  return {
    name,
    turns,
    ...(fields.contains !== undefined && { contains: textField(fields, 'contains') }),
    repeat: fields.repeat === undefined ? false : flag(fields, 'repeat'),
    turns_from:
      fields.turns_from === undefined ? 'last_user' : oneOf(fields, 'turns_from', ['last_user', 'start']),
  }
}
