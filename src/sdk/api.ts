import type { contracts } from '#contracts.ts'
import type { EventOf, InputOf, OutputOf } from '#kernel/contract/operation.ts'
import type { Static, TSchema } from '#kernel/contract/schema.ts'
import type { TaskFullView } from '#kernel/contract/task-response.ts'
import type { TaskStatus } from '#kernel/task/task-state.ts'
import type { Call, ListCall } from './call.ts'
import type { FollowOptions, StreamEvent } from './event-stream.ts'
import type { CallOptions } from './transport.ts'

/** The types of the client, derived from the contracts. A release contains generated types in place of this file. */

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text

/** The client adds these fields by itself. */
type SignedFields = 'agent_id' | 'timestamp' | 'signature'

type ResultOf<E> = E extends { result: infer S extends TSchema } ? Static<S> : Record<string, unknown>
/** The task that a call made: the short form at once, the full form if the call waited. */
type TaskAnswer<Result> = {
  task_id: string
  status: TaskStatus
  message: string
  poll_url: string
  idempotency_key: string | null
} & Partial<Omit<TaskFullView, 'result'>> & { result?: Result | null }

/** A task whose caller may wait for its end; one that is answered always does, and answers with its result. */
type Waiting<E> = E extends { kind: 'task' } ? (E extends { isAnswered: true } ? never : E) : never

type FieldsOf<E> =
  E extends Waiting<E>
    ? InputOf<E> & { wait?: boolean; timeout?: number }
    : E extends { isSigned: true }
      ? Omit<InputOf<E>, SignedFields> & { agent_id?: string; timestamp?: number; signature?: string }
      : InputOf<E>
type AnswerOf<E> = E extends Waiting<E> ? TaskAnswer<ResultOf<E>> : OutputOf<E>

type ItemOf<Output> = Output extends readonly (infer Item)[]
  ? Item
  : Output extends
        | { items: readonly (infer Item)[] }
        | { events: readonly (infer Item)[] }
        | { positions: readonly (infer Item)[] }
        | { fills: readonly (infer Item)[] }
        | { orders: readonly (infer Item)[] }
    ? Item
    : never
type QueryOf<E> = E extends { query: infer S extends TSchema } ? Static<S> : unknown
type IsList<E> = E extends { kind: 'read' }
  ? Extract<keyof QueryOf<E>, 'after' | 'before' | 'skip'> extends never
    ? false
    : true
  : false

type Takes<Input, Options> = unknown extends Input
  ? [input?: Record<string, never>, options?: Options]
  : Record<never, never> extends Input
    ? [input?: Input, options?: Options]
    : [input: Input, options?: Options]

type NamedEvents<M> = {
  [Name in keyof M]: { id: string; event: Name; data: M[Name] extends TSchema ? Static<M[Name]> : never }
}[keyof M]

type Method<E> = E extends { kind: 'stream'; events: infer Events }
  ? (...given: Takes<InputOf<E>, FollowOptions>) => AsyncGenerator<NamedEvents<Events>>
  : OtherMethod<E>
type OtherMethod<E> = E extends { kind: 'stream' }
  ? (...given: Takes<InputOf<E>, FollowOptions>) => AsyncGenerator<StreamEvent<EventOf<E>>>
  : (
      ...given: Takes<FieldsOf<E>, CallOptions>
    ) => IsList<E> extends true ? ListCall<AnswerOf<E>, ItemOf<AnswerOf<E>>> : Call<AnswerOf<E>>

type Contract = (typeof contracts)[number]
type EntriesOf<Group> = Contract extends infer C
  ? C extends { group: Group; entries: infer Entries }
    ? (entries: { [K in keyof Entries]: Method<Entries[K]> }) => void
    : never
  : never
type Merged<U> = (U extends unknown ? U : never) extends (entries: infer Entries) => void ? Entries : never

/** The operations as `client.<section>.<operation>(input, options)`, with the types of the contracts. */
export type Api = {
  [Group in Contract['group'] as CamelCase<Group>]: Merged<EntriesOf<Group>>
}
