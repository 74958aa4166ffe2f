import type { IncomingHttpHeaders } from 'node:http'
import type { Fault } from '#kernel/contract/fault.ts'

/**
 * The routes of an interface that has no HTTP server of its own, such as MCP: the gateway's HTTP server receives their
 * requests and sends their answers.
 */

export type WebRequest = {
  method: string
  url: string
  headers: IncomingHttpHeaders
  id: string
  address: string
  /** The signal aborts when the client leaves or the server closes. */
  signal: AbortSignal
}
export type WebRoute<State = unknown> = {
  path: string
  methods: readonly ('GET' | 'POST' | 'DELETE')[]
  bodyBytesMax: number
  /** The connection of a body that takes longer is closed; without it the limit of the server counts. */
  bodyMsMax?: number
  /** The answer gets the bytes of the body as they arrived, of any type; otherwise the body is JSON. */
  isRaw?: true
  /** Admits a request before its body is read; the HTTP server answers a fault in the usual form. */
  admit(request: WebRequest): Promise<State>
  answer(request: WebRequest, body: unknown, state: State): Promise<Response>
  /** Answers a request whose body could not be read; the fault is `validation` if the body is no JSON. */
  refuseBody(fault: Fault, state: State): Promise<Response>
}
export type PublicText = { path: string; text: () => string; type?: string }
export type WebDoor = { routes: readonly WebRoute[]; documents: readonly PublicText[] }
