import { Fault } from '#kernel/contract/fault.ts'
import { type AgentRequest, fileBytesMax, filePartBytes } from '#kernel/wire/agent-protocol.ts'
import type { PastMessage, ToolDescription, Tools } from '#kernel/wire/chat-answerer.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'

/** The tools of a turn are at the gateway: each call is a request to it. */

export type Response = { output: Json } & ({ ok: true } | { ok: false; code: string; message: string }) & {
    fetchedAt: Date
  }
/** Sends a request to the gateway and resolves with its response; rejects if the request itself failed. */
export type Ask = (event: AgentRequest, data: object) => Promise<Response>

export function remoteTools(ask: Ask): Tools {
  const notes = new Map<string, Promise<JsonObject>>()
  let publishing: Promise<void> = Promise.resolve()

  const makeNote = async (name: string, make: () => Promise<JsonObject>): Promise<JsonObject> => {
    const { output } = await ask('note_get', { name })
    const { found, note } = output as { found: boolean; note?: JsonObject }
    if (found) return note!
    let made: JsonObject
    try {
      made = await make()
    } catch (error) {
      await ask('note_failed', { name })
      throw error
    }
    return ((await ask('note_put', { name, note: made })).output as { note: JsonObject }).note
  }
  const publish: Tools['publish'] = async ({ name, contentType, bytes }) => {
    if (bytes.length > fileBytesMax) throw new Fault('conflict', `A file has from 1 to ${fileBytesMax} bytes`)
    const parts = Math.max(1, Math.ceil(bytes.length / filePartBytes))
    for (let part = 1; part <= parts; part++) {
      const piece = bytes.subarray((part - 1) * filePartBytes, part * filePartBytes)
      const base64 = Buffer.from(piece).toString('base64')
      await ask('file', { name, content_type: contentType, size: bytes.length, part, parts, base64 })
    }
  }
  return {
    async call({ id, name, input, isFromModel = false, ...more }) {
      // This line does not compile if a call has a field that the protocol lacks.
      const all: Record<string, never> = more
      return await ask('tool_call', { id, name, arguments: input, from_model: isFromModel, ...all })
    },
    async note(name, make) {
      const earlier = notes.get(name)
      if (earlier) return structuredClone(await earlier)
      const making = makeNote(name, make)
      notes.set(name, making)
      // If a note could not be made, its promise is forgotten, so that a later call makes the note.
      making.catch(() => notes.delete(name))
      return structuredClone(await making)
    },
    describe: async () => (await ask('describe', {})).output as Json[] as ToolDescription[],
    history: async () => (await ask('history', {})).output as Json[] as PastMessage[],
    /** Files are published one after the other, because the gateway expects their parts in order. */
    publish(file) {
      publishing = publishing.then(() => publish(file))
      publishing.catch(() => undefined)
      return publishing
    },
  }
}
