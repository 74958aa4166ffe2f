import { Fault } from '#kernel/contract/fault.ts'
import type { Usage } from '#kernel/money/model-token-prices.ts'
import type { Tools } from '#kernel/wire/chat-answerer.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import type { EventWriter } from './event-writer.ts'
import type { StoredResult } from './store.ts'

/** A note is a value that a turn makes only once, such as the answer of a model. It is stored like a tool result. */

const prefix = 'note:'
const notesMax = 160
const nameCharactersMax = 64
const noteBytesMax = 256 * 1_024
const turnBytesMax = 4 * 1_024 * 1_024

/** Whether a stored result is a note; the id of a tool call never begins with the prefix of notes. */
export const isNote = (callId: string): boolean => callId.startsWith(prefix)

const bytesOf = (note: JsonObject): number => Buffer.byteLength(JSON.stringify(note))

const tooMuch = (what: string): Fault => new Fault('conflict', `An answer has ${what}`)

export function createNote(
  writer: Pick<EventWriter, 'store'>,
  stored: readonly StoredResult[],
): Tools['note'] {
  const notes = stored.filter(({ call_id }) => isNote(call_id))
  const known = new Map(notes.map(({ call_id, output }) => [call_id, Promise.resolve(output)]))
  let bytes = notes.reduce((sum, { output }) => sum + bytesOf(output), 0)
  const makeOnce = async (id: string, make: () => Promise<JsonObject>): Promise<JsonObject> => {
    const note = await make()
    const size = bytesOf(note)
    if (size > noteBytesMax || bytes + size > turnBytesMax)
      throw tooMuch(`notes of at most ${noteBytesMax} bytes, and ${turnBytesMax} in all`)
    bytes += size
    await writer.store({ call_id: id, output: note })
    return note
  }
  return async (name, make) => {
    const id = `${prefix}${name}`
    const earlier = known.get(id)
    if (earlier) return structuredClone(await earlier)
    if (name === '' || name.length > nameCharactersMax)
      throw tooMuch(`notes with names of up to ${nameCharactersMax} characters`)
    if (known.size >= notesMax) throw tooMuch(`at most ${notesMax} notes`)
    const making = makeOnce(id, make)
    known.set(id, making)
    // After a failure the note is forgotten, so that its value may be made again.
    making.catch(() => known.delete(id))
    return structuredClone(await making)
  }
}

const countOf = (value: unknown): number =>
  Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0

export function usageOfNotes(stored: readonly StoredResult[]): Usage | undefined {
  const counted = stored.flatMap(({ call_id, output: { usage } }) =>
    isNote(call_id) && isRecord(usage) ? [usage] : [],
  )
  if (counted.length === 0) return undefined
  return {
    inputTokens: counted.reduce((sum, { inputTokens }) => sum + countOf(inputTokens), 0),
    outputTokens: counted.reduce((sum, { outputTokens }) => sum + countOf(outputTokens), 0),
  }
}
