import { Fault, type FaultCode, faults } from '#kernel/contract/fault.ts'
import { type AgentRequest, type GatewayFrame, openRequestsMax } from '#kernel/wire/agent-protocol.ts'
import type { Ask, Response } from './remote-tools.ts'

type ToolResponse = Extract<GatewayFrame, { type: 'tool_response' }>
type Deps = {
  add(event: AgentRequest, data: object): number
}
export type OpenRequests = {
  ask: Ask
  respond(response: ToolResponse): void
  /** Ends the run: open requests fail, and no further ones are sent. */
  close(): void
}

export function createOpenRequests({ add }: Deps): OpenRequests {
  const open = new Map<number, PromiseWithResolvers<Response>>()
  let isClosed = false
  return {
    async ask(event, data) {
      while (open.size >= openRequestsMax)
        await Promise.race([...open.values()].map(({ promise }) => promise.catch(() => undefined)))
      if (isClosed) throw ended()
      const response = Promise.withResolvers<Response>()
      open.set(add(event, data), response)
      return response.promise
    },
    respond({ seq, ok, output = null, fetched_at, code = 'internal', message = '', thrown }) {
      const waiting = open.get(seq)
      open.delete(seq)
      if (thrown) return waiting?.reject(faultOf(code, message))
      // Only results of tools have a time; the answers to other requests ignore the time.
      const fetchedAt = new Date(fetched_at ?? 0)
      waiting?.resolve(ok ? { ok, output, fetchedAt } : { ok, output, code, message, fetchedAt })
    },
    close() {
      isClosed = true
      for (const { reject } of open.values()) reject(ended())
      open.clear()
    },
  }
}

const faultOf = (code: string, message: string): Fault =>
  new Fault(Object.hasOwn(faults, code) ? (code as FaultCode) : 'internal', message)
const ended = () => new Fault('unavailable', 'The run has ended')
