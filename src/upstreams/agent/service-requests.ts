import { Fault } from '#kernel/contract/fault.ts'
import {
  type AgentEventData,
  type AgentEventRead,
  type AgentRequest,
  fileBytesMax,
  namesPerPage,
  ProtocolError,
} from '#kernel/wire/agent-protocol.ts'
import type { Tools } from '#kernel/wire/chat-answerer.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'

/** Serves the requests that the service makes in a run, with the tools of that run only. */

export type Answer = { ok: boolean; output?: Json; fetched_at?: string; code?: string; message?: string }
export type Requests = {
  perform(request: Request): Promise<Answer>
  /**
   * Rejects the notes (results that a turn stores so that each is made only once) that the service was asked to make
   * and has not sent.
   */
  close(): void
}
/** The names of chains, tokens and markets, which the service caches by their version. */
export type GatewayNames = { version: string; chains: readonly object[]; assets: readonly object[] }
export type Request = Extract<AgentEventRead, { event: AgentRequest }>
type Note = { made: PromiseWithResolvers<JsonObject>; stored: Promise<JsonObject> }
type Assembly = { name: string; parts: Buffer[]; bytes: number }

const done: Answer = { ok: true, output: null }

export function createRequests(tools: Tools, names: GatewayNames): Requests {
  const notes = new Map<string, Note>()
  let assembly: Assembly | undefined

  /**
   * Returns a stored note, or `found: false`: the service then makes the note, and `note_put` returns it as stored.
   */
  const getNote = async (name: string): Promise<Answer> => {
    const made = Promise.withResolvers<JsonObject>()
    const wanted = Promise.withResolvers<undefined>()
    made.promise.catch(() => undefined)
    const stored = tools.note(name, () => {
      wanted.resolve(undefined)
      return made.promise
    })
    stored.catch(() => undefined)
    notes.set(name, { made, stored })
    const note = await Promise.race([stored, wanted.promise])
    return { ok: true, output: note === undefined ? { found: false } : { found: true, note } }
  }
  const putNote = async ({ name, note }: AgentEventData['note_put']): Promise<Answer> => {
    const known = notes.get(name)
    if (!known) throw new ProtocolError('a note was put that was not asked for')
    known.made.resolve(note)
    return { ok: true, output: { note: await known.stored } }
  }
  const failNote = async (name: string): Promise<Answer> => {
    const known = notes.get(name)
    notes.delete(name)
    known?.made.reject(new Fault('unavailable', 'The note was not made'))
    await known?.stored.catch(() => undefined)
    return done
  }
  /** The parts of a file arrive in order, and one file after the other. */
  const addPart = async (part: AgentEventData['file']): Promise<Answer> => {
    if (part.part === 1) assembly = { name: part.name, parts: [], bytes: 0 }
    const file = assembly
    if (!file || file.name !== part.name || file.parts.length !== part.part - 1 || part.part > part.parts)
      throw new ProtocolError('the parts of a file come in order')
    const bytes = Buffer.from(part.base64, 'base64')
    file.parts.push(bytes)
    file.bytes += bytes.length
    if (file.bytes > fileBytesMax) throw new ProtocolError('a file is too large')
    if (part.part < part.parts) return done
    assembly = undefined
    if (file.bytes !== part.size) throw new ProtocolError('a file has another size')
    await tools.publish({
      name: part.name,
      contentType: part.content_type,
      bytes: new Uint8Array(Buffer.concat(file.parts)),
    })
    return done
  }
  /**
   * Calls a tool. A call without `from_model` counts as a call of a model, which may change something only if the
   * user's words ask for the change.
   */
  const call = async ({
    id,
    name,
    arguments: input,
    from_model: isFromModel = true,
  }: AgentEventData['tool_call']): Promise<Answer> => {
    const { fetchedAt, ...result } = await tools.call({ id, name, input: input as JsonObject, isFromModel })
    return { ...result, fetched_at: fetchedAt.toISOString() }
  }
  const pageOfNames = (from: number): Answer => {
    const { version, chains, assets } = names
    const next = from + namesPerPage
    return {
      ok: true,
      output: {
        version,
        chains: (from === 0 ? chains : []) as Json[],
        assets: assets.slice(from, next) as Json[],
        next: next < assets.length ? next : null,
      },
    }
  }
  return {
    async perform({ event, data }) {
      switch (event) {
        case 'tool_call':
          return call(data)
        case 'file':
          return addPart(data)
        case 'note_get':
          return getNote(data.name)
        case 'note_put':
          return putNote(data)
        case 'note_failed':
          return failNote(data.name)
        case 'describe':
          return { ok: true, output: [...(await tools.describe())] }
        case 'history':
          return { ok: true, output: [...(await tools.history())] }
        case 'names':
          return pageOfNames(data.from)
      }
    },
    close() {
      for (const { made } of notes.values()) made.reject(new Fault('unavailable', 'The run has ended'))
    },
  }
}
