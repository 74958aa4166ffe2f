import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import type { Entry, Operation, StreamItem } from '#kernel/contract/operation.ts'
import type { Duplicates } from './recent-request.ts'

export type InvokeOptions = {
  wait: boolean
  timeoutMs: number
  key?: string
  /** When the key was made, if that is known: nothing was executed under it before. */
  keyMadeAt?: Date
  /** Set by doors whose callers may repeat a task under a fresh key; without it nothing is checked. */
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
/** `key` and `replayed` are set for a stream that a task fills. */
export type StreamReply = {
  kind: 'stream'
  items: AsyncIterable<StreamItem>
  replayed?: boolean
  key?: string
}
export type Reply = Answer | StreamReply
/** The one path that every door uses. */
export type Invoke = (call: OperationCall) => Promise<Reply>
