import { Fault } from '#kernel/contract/fault.ts'
import { isRecord, type JsonObject, parseJson } from '#kernel/wire/json.ts'
import type { ModelEvent, ReaderOptions, ToolArguments } from './turn.ts'

/** Assembles calls from pieces that arrive in any order. */

type OpenCall = { id: string; name: string; pieces: string[]; extra?: JsonObject }
type ToolCallEvent = Extract<ModelEvent, { type: 'tool_call' }>
export type CallCollector = {
  /**
   * Opens a call under a key of the stream. A call that is still open under the same key is another call, and is kept
   * until the end.
   */
  start(key: number, call: { id: string; name: string }): void
  find(key: number): Readonly<OpenCall> | undefined
  rename(key: number, name: string): void
  append(key: number, text: string): void
  attach(key: number, extra: JsonObject): void
  /** Closes the call under this key, and returns its event; the list is empty if no call is open there. */
  finish(key: number): ToolCallEvent[]
  finishAll(): ToolCallEvent[]
  count(): number
}

/** The most characters of a call's `extra`, such as a signature of some hundred, which is stored with the call. */
const extraCharactersMax = 8_192

export function parseArguments(text: string): ToolArguments {
  // A model that calls a tool without arguments sends no text for them.
  if (text.trim() === '') return { isValid: true, value: {} }
  const value = parseJson(text)
  if (value === undefined) return { isValid: false, problem: 'the arguments are no valid JSON' }
  if (!isRecord(value)) return { isValid: false, problem: 'the arguments are no JSON object' }
  return { isValid: true, value: value as JsonObject }
}

export function createCallCollector({ toolCallsMax, usedIds }: ReaderOptions): CallCollector {
  const open = new Map<number, OpenCall>()
  const ids = new Set(usedIds)
  /** Calls that were open under a key that another call took. */
  const displaced: OpenCall[] = []
  let started = 0

  /** Results are sent back by id, so no two calls of a conversation may share one. */
  const uniqueId = (wanted: string): string => {
    const base = wanted === '' ? 'call' : wanted
    let id = wanted
    for (let number = 1; id === '' || ids.has(id); number++) id = `${base}_${number}`
    ids.add(id)
    return id
  }
  const eventOf = ({ id, name, pieces, extra }: OpenCall): ToolCallEvent => {
    const argumentsText = pieces.join('')
    return {
      type: 'tool_call',
      id: uniqueId(id),
      name,
      argumentsText,
      arguments: parseArguments(argumentsText),
      ...(extra && { extra }),
    }
  }
  const take = (key: number): OpenCall[] => {
    const call = open.get(key)
    open.delete(key)
    return call ? [call] : []
  }

  return {
    start(key, { id, name }) {
      started += 1
      if (started > toolCallsMax)
        throw new Fault('upstream_rejected', `The model made more than ${toolCallsMax} calls in one turn`)
      displaced.push(...take(key))
      open.set(key, { id, name, pieces: [] })
    },
    find: (key) => open.get(key),
    rename(key, name) {
      const call = open.get(key)
      if (call) call.name = name
    },
    append(key, text) {
      open.get(key)?.pieces.push(text)
    },
    attach(key, extra) {
      const call = open.get(key)
      if (call && JSON.stringify(extra).length <= extraCharactersMax) call.extra = extra
    },
    finish: (key) => take(key).map(eventOf),
    finishAll() {
      const calls = [...displaced.splice(0), ...open.values()]
      open.clear()
      return calls.map(eventOf)
    },
    count: () => started,
  }
}
