import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import type { Entry, Operation, StreamItem } from '#kernel/contract/operation.ts'
import type { Duplicates } from './recent-request.ts'

export type InvokeOptions = {
  wait: boolean
  timeoutMs: number
  key?: string
  /** Set by doors whose callers may repeat a task under a fresh key; absent: no check. */
  duplicates?: Duplicates
}
export type InvokeRequest = RequestFacts & { lastEventId?: string }
export type OperationOf<K extends Entry['kind']> = Extract<Operation, { entry: { kind: K } }>

/** One call of an operation, admitted and validated. */
export type OperationCall<O extends Operation = Operation> = {
  operation: O
  input: Record<string, unknown>
  caller: Caller | null
  options: InvokeOptions
  request: InvokeRequest
}
/** A call by a known caller. */
export type UserCall<K extends Entry['kind']> = OperationCall<OperationOf<K>> & { caller: Caller }

export type Answer = { kind: 'answer'; body: unknown; replayed: boolean; key?: string }
/** `key` and `replayed`: of a stream that a task fills. */
export type StreamReply = {
  kind: 'stream'
  items: AsyncIterable<StreamItem>
  replayed?: boolean
  key?: string
}
export type Reply = Answer | StreamReply
/** The one path of every door. */
export type Invoke = (call: OperationCall) => Promise<Reply>
