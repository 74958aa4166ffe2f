import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import type { Entry, Operation, StreamItem } from '#kernel/contract/operation.ts'
import type { Duplicates } from './duplicate-requests.ts'

export type InvokeOptions = {
  wait: boolean
  timeoutMs: number
  key?: string
  /** When the idempotency key was made, if that is known: nothing was executed under the key before that time. */
  keyMadeAt?: Date
  /**
   * How a transport, such as MCP, treats a request that repeats an earlier one under a fresh key; if absent, nothing is
   * checked.
   */
  duplicates?: Duplicates
}
export type InvokeRequest = RequestFacts & { lastEventId?: string }
export type OperationOf<K extends Entry['kind']> = Extract<Operation, { entry: { kind: K } }>

export type OperationCall<O extends Operation = Operation> = {
  operation: O
  input: Record<string, unknown>
  caller: Caller | null
  options: InvokeOptions
  request: InvokeRequest
}
export type UserCall<K extends Entry['kind']> = OperationCall<OperationOf<K>> & { caller: Caller }

export type Answer = { kind: 'answer'; body: unknown; replayed: boolean; key?: string }
/** The items of a stream; `key` and `replayed` are set only for a stream that a durable task fills. */
export type StreamReply = {
  kind: 'stream'
  items: AsyncIterable<StreamItem>
  replayed?: boolean
  key?: string
}
export type Reply = Answer | StreamReply
/** Runs an operation; every door, such as HTTP and MCP, calls operations by this function alone. */
export type Invoke = (call: OperationCall) => Promise<Reply>
