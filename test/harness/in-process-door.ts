/** A door without a transport: an operation by its name, one flat record, a credential. */
import { type FaultView, faultView } from '#invoke/fault-view.ts'
import type { Invocation } from '#invoke/invocation.ts'
import { Fault, internalFault } from '#kernel/contract/fault.ts'
import type { Operation, StreamItem } from '#kernel/contract/operation.ts'

type Fields = Record<string, unknown>
export type DoorOptions = {
  authorization?: string | undefined
  key?: string
  address?: string
  /** A stream is read up to this number of items. */
  itemsMax?: number
}
export type DoorReply =
  | { status: 200; result: unknown; replayed: boolean; key: string | undefined }
  | { status: number; fault: FaultView }
/** What two doors have in common: the one of HTTP is asked by the same request. */
export type Door = (operation: string, input: Fields, options?: DoorOptions) => Promise<DoorReply>

export const loopback = '127.0.0.1'

export function inProcessDoor(operations: readonly Operation[], invocation: Invocation): Door {
  const known = new Map(operations.map((operation) => [operation.name, invocation.prepare(operation)]))
  let requests = 0

  const call = async (
    name: string,
    fields: Fields,
    { authorization, key, address = loopback, itemsMax = 1 }: DoorOptions,
  ): Promise<DoorReply> => {
    const operation = known.get(name)
    if (!operation) throw new Fault('not_found', `There is no operation ${name}`)
    const admitted = await operation.admit({ authorization, address })
    if (admitted.refusal) throw admitted.refusal
    const flat = structuredClone({ ...fields, ...(key !== undefined && { idempotency_key: key }) })
    const { input, ...options } = operation.readFlatInput(flat)
    const leaving = new AbortController()
    const request = { id: `in-process-${++requests}`, address, signal: leaving.signal }
    const outcome = await operation.call(admitted, input, options, request)
    if (outcome.kind === 'answer')
      return { status: 200, result: outcome.body, replayed: outcome.replayed, key: outcome.key }
    const result = await readItems(outcome.items, itemsMax).finally(() => leaving.abort())
    return { status: 200, result, replayed: false, key: undefined }
  }

  return (name, input, options = {}) =>
    call(name, input, options).catch((error: unknown) => {
      const fault = faultView(error instanceof Fault ? error : internalFault(error, { mayHaveActed: false }))
      return { status: fault.status, fault }
    })
}

async function readItems(items: AsyncIterable<StreamItem>, max: number): Promise<StreamItem[]> {
  const read: StreamItem[] = []
  for await (const item of items) if (read.push(item) >= max) break
  return read
}
