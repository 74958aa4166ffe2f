import {
  type Admission,
  type Step,
  type Steps,
  type TaskPriority,
  type TaskRules,
  untypedSteps,
} from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { ActScope, Asker, Caller, RequestFacts, Scope } from './caller.ts'
import * as T from './schema.ts'

/**
 * One entry per endpoint. Route, validation, OpenAPI, MCP tool, SDK method and CLI command are derived from it.
 * A schema with `$id` is inline wherever it is used, nested too; the OpenAPI writer registers each once and refers to it.
 */

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type Route = `${Method} /${string}`
/**
 * `public`: no credential. `person`: an OAuth token, also before the sign-up. `backend`: the key of a backend. A scope: a
 * bearer token that has it.
 */
export type Access = 'public' | 'person' | 'backend' | Scope
/** A scope of a bearer token. */
export const isScope = (access: Access): access is Scope =>
  access !== 'public' && access !== 'backend' && access !== 'person'
/** Points of a rate limit are counted per class. */
export type RateClass = 'auth' | 'read' | 'money' | 'exit' | 'stream' | 'image'

type Shape = {
  summary: string
  description?: string
  /** The specification of the interface does not have this operation. */
  isAddition?: true
  access: Access
  params?: T.TObject
  query?: T.TObject
  body?: T.TSchema
  /** The body may be omitted. */
  bodyOptional?: boolean
  /** Over HTTP the fields of the body may be sent as a query instead: not every client sends a body with a DELETE. */
  bodyInQuery?: boolean
  rate?: RateClass
  /** `failures`: only failed calls count, so failures from an address never block its successful calls. */
  counts?: 'failures'
  /** Points that a call with this input takes from its budget; absent: one. */
  points?: (input: Readonly<Record<string, unknown>>) => number
  /** Codes of the catalogue that this operation can answer, in addition to those of every operation. */
  faults?: readonly string[]
}
export type ReadShape = Shape & {
  output: T.TSchema
  /** Where the answer is an array and the query has `after`: the field of the last entry that the next page follows. */
  pageAfter?: string
}
export type ActShape = Shape & {
  output: T.TSchema
  /** `derived`: the reply is not stored under the key; a repetition computes it again and changes nothing. */
  replies?: 'derived'
  /** A repetition changes nothing more, so callers without a key may repeat it. */
  repeatable?: true
  /** The body has a `timestamp` and a `signature` of the agent's key over the name of the operation; clients add both. */
  isSigned?: true
}
export type StreamShape = Shape & {
  event: T.TSchema
  /** The data of each event by its name, where each has its own form. */
  events?: Readonly<Record<string, T.TSchema>>
  /**
   * A durable task of this kind fills the stream: it is accepted once per key, and followed on any instance. Callers
   * that send `stream: false` wait for its answer.
   */
  taskKind?: string
  output?: T.TSchema
  priority?: TaskPriority
}
export type TaskShape = Shape & {
  waitSeconds: number
  /** Set where several operations create one kind of task. */
  taskKind?: string
  /** A repetition moves nothing a second time, so callers without a key may repeat it. */
  repeatable?: true
  output: T.TSchema
  /** Form of `result` once the task has ended. It documents and never filters: a step may add fields. */
  result?: T.TSchema
  priority?: TaskPriority
  /** The call always waits for the end of the task, and answers with what it made: `finish` of its function. */
  isAnswered?: true
}

type EntryOf<K extends string, S> = { kind: K; route: Route; method: Method; path: string } & S
export type ReadEntry<S extends ReadShape = ReadShape> = EntryOf<'read', S>
export type ActEntry<S extends ActShape = ActShape> = EntryOf<'act', S>
export type StreamEntry<S extends StreamShape = StreamShape> = EntryOf<'stream', S>
/** See `hasTask`. */
export type StreamTaskEntry = StreamEntry & { output: T.TSchema; taskKind: string }
export type TaskEntry<S extends TaskShape = TaskShape> = EntryOf<'task', S>
export type Entry = ReadEntry | ActEntry | StreamEntry | TaskEntry

function toEntry<K extends string, S>(kind: K, route: Route, shape: S): EntryOf<K, S> {
  const space = route.indexOf(' ')
  return { kind, route, method: route.slice(0, space) as Method, path: route.slice(space + 1), ...shape }
}

/** Answers at once and changes nothing. */
export const read = <const S extends ReadShape>(route: Route, shape: S) => toEntry('read', route, shape)
/** Changes something at once, in one transaction, under an idempotency key. */
export const act = <const S extends ActShape>(route: Route, shape: S) => toEntry('act', route, shape)
/** Answers with a stream of events. */
export const stream = <const S extends StreamShape>(route: Route, shape: S) => toEntry('stream', route, shape)
/** Becomes a durable task; the caller may wait for its end. */
export const task = <const S extends TaskShape>(route: Route, shape: S) => toEntry('task', route, shape)

export type Contract = { group: string; entries: Record<string, Entry> }

/** Names come from section and key, never from the path: `earn_deposit`, `client.earn.deposit`. */
export const group = <const N extends string, const E extends Record<string, Entry>>(
  name: N,
  entries: E,
) => ({
  group: name,
  entries,
})

export const operationName = (groupName: string, key: string): string =>
  `${groupName}_${key}`.replace(/[-A-Z]/g, (match) => (match === '-' ? '_' : `_${match.toLowerCase()}`))

type Part<E, K extends string> = E extends { [P in K]: infer S extends T.TSchema } ? T.Static<S> : unknown
export type InputOf<E> = Part<E, 'body'> & Part<E, 'query'> & Part<E, 'params'>
export type OutputOf<E> = E extends { output: infer S extends T.TSchema } ? T.Static<S> : never
export type EventOf<E> = E extends { event: infer S extends T.TSchema } ? T.Static<S> : never
export type CallerOf<E> = E extends { access: 'public' } ? Caller | null : Caller

/** One event of a stream as it is sent. */
export type StreamItem<D = unknown> = { id?: string; event?: string; data: D } | { comment: string }

/** The task of an answered operation, as it has ended. */
export type EndedTask = { id: string; status: string; result: JsonObject | null; error: JsonObject | null }

/** Answers of a task operation beside those that every task has. */
type TaskAnswers<Input> = {
  /** The user whose task the call of a backend becomes; throws where it has no such user. */
  payerOf?: (input: Input, caller: Caller, key: string | undefined) => Promise<Payer>
  /** Of an answered operation: the answer that the ended task has, or its fault. */
  finish?: (task: EndedTask, payer: Caller) => Promise<object>
  /** Answers a request that makes no task, such as a dry run; undefined where the request makes one. */
  answer?: (input: Input, caller: Caller) => Promise<object | undefined>
  /** Fields that a waited answer has beside those of the task, from the task's data. */
  answerFields?: (data: JsonObject) => JsonObject
  /** Fields that every answer with a task has beside those of the task. */
  everyAnswer?: (task: AnsweredTask) => JsonObject
}
/** Who pays, and the idempotency key within the keys of this user. */
export type Payer = { caller: Caller; key?: string }
type AnsweredTask = { id: string; status: string; data: JsonObject }
type TaskFunction<Input> = TaskRules &
  TaskAnswers<Input> & {
    admit: (input: Input, asker: Asker) => Promise<Admission>
    steps: Record<string, Step>
    version?: number
  }

/** Ties the admission of a task to its steps: both have the same data, and each names only steps of this kind. */
export const taskOf = <Input, Data extends JsonObject, Names extends string>({
  admit,
  steps,
  ...rules
}: TaskRules &
  TaskAnswers<Input> & {
    admit: (input: Input, asker: Asker) => Promise<Admission<Data, NoInfer<Names>>>
    steps: Steps<NoInfer<Data>, Names, NoInfer<Names>>
    version?: number
  }): TaskFunction<Input> => ({ ...rules, admit, steps: untypedSteps(steps) })

type StreamRequest = RequestFacts & { lastEventId?: string }
/** The task that fills a stream, and how its callers read it. */
type StreamTask<Input, Event, Output> = TaskRules & {
  admit: (input: Input, caller: Caller) => Promise<Admission>
  steps: Record<string, Step>
  version?: number
  /** Throws before the first event where the request cannot resume there. */
  subscribe: (taskId: string, caller: Caller, request: StreamRequest) => AsyncIterable<StreamItem<Event>>
  /** The key of the request is added to the answer. */
  collect: (taskId: string, caller: Caller, request: RequestFacts) => Promise<Omit<Output, 'idempotency_key'>>
}

type FunctionOf<E> = E extends { kind: 'task' }
  ? TaskFunction<InputOf<E>>
  : E extends { kind: 'stream'; taskKind: string; output: T.TSchema }
    ? StreamTask<InputOf<E>, EventOf<E>, OutputOf<E>>
    : E extends { kind: 'stream' }
      ? (input: InputOf<E>, caller: Caller, request: StreamRequest) => AsyncIterable<StreamItem<EventOf<E>>>
      : (input: InputOf<E>, caller: CallerOf<E>, request: RequestFacts) => Promise<OutputOf<E>>

export type Functions<C extends Contract> = { [K in keyof C['entries']]: FunctionOf<C['entries'][K]> }

type PrepareAct<Input, Prepared> = (input: Input, caller: Caller) => Promise<Prepared>
/**
 * An act that reads upstreams before its transaction begins: `prepare` reads and refuses, and the transaction writes what
 * it found. A repetition under the same key prepares nothing.
 */
export const preparedAct = <Input, Prepared, Output>(
  prepare: PrepareAct<Input, Prepared>,
  run: (prepared: Prepared, caller: Caller, request: RequestFacts) => Promise<Output>,
): ((input: Input, caller: Caller, request: RequestFacts) => Promise<Output>) & {
  prepare: PrepareAct<Input, Prepared>
} =>
  Object.assign(
    (_input: Input, caller: Caller, request: RequestFacts) =>
      run(request.prepared as Prepared, caller, request),
    { prepare },
  )

/**
 * Runs an act that a person has confirmed, as that person: it reads and refuses first, and writes in the transaction that
 * ends its task. `userId`: the user who has asked, who may be an agent of this person.
 */
export type ApplyAct = (
  input: JsonObject,
  person: Caller,
  userId: string,
) => Promise<(scope: ActScope) => Promise<object>>
/** An act that waits for a person, whole or in part; `apply` runs what was confirmed. */
export const confirmedAct = <F extends (...given: never[]) => Promise<unknown>>(
  run: F,
  apply: ApplyAct,
): F & { apply: ApplyAct } => Object.assign(run, { apply })

/** Names the state of an answer; it changes whenever the answer does. */
type Version = () => unknown
/**
 * A public read whose answer depends on no caller, and changes only with its version: until then a door repeats the
 * bytes that it sent.
 */
export const sharedRead = <F extends (...given: never[]) => Promise<unknown>>(
  version: Version,
  run: F,
): F & { version: Version } => Object.assign(run, { version })

/** Absent where each call has an answer of its own. Nothing of a request may enter a shared answer. */
export function versionOf({ entry, run }: Operation): Version | undefined {
  const isFixed = entry.kind === 'read' && entry.access === 'public' && entry.method === 'GET'
  if (!isFixed || entry.params || entry.query || !('version' in run)) return undefined
  return typeof run.version === 'function' ? (run.version as Version) : undefined
}

/** The functions of a stream that a task fills; its entry names the kind of that task. */
export function streamTaskOf({ entry, name, run }: Extract<Operation, { entry: { kind: 'stream' } }>) {
  if (entry.taskKind === undefined) throw new Error(`no task fills the stream ${name}`)
  return run as unknown as StreamTask<Record<string, unknown>, unknown, unknown>
}

type UntypedFunctions = { [K in Entry['kind']]: FunctionOf<Extract<Entry, { kind: K }>> }
/** An entry with the function that implements it, as edges and runner read it. */
export type Operation = {
  [K in Entry['kind']]: {
    name: string
    group: string
    key: string
    entry: Extract<Entry, { kind: K }>
    run: UntypedFunctions[K]
  }
}[Entry['kind']]

/** The only cast of the contract: afterwards operations are untyped. */
export function implement<C extends Contract>(contract: C, functions: Functions<C>): Operation[] {
  return Object.entries(contract.entries).map(
    ([key, entry]) =>
      ({
        name: operationName(contract.group, key),
        group: contract.group,
        key,
        entry,
        run: functions[key],
      }) as unknown as Operation,
  )
}

/** Whether a repeat under the same key returns the same answer; that requires an owner of the key. */
export const isKeyed = ({ kind, method, access }: Entry): boolean =>
  kind !== 'read' && method !== 'GET' && access !== 'public'

/** A stream that a task fills: it has an end, and an answer in its place. */
export const hasTask = (entry: Entry): entry is StreamTaskEntry =>
  entry.kind === 'stream' && entry.taskKind !== undefined && entry.output !== undefined

/** Whether a repetition under another key or none could act twice. */
export const isGuarded = (entry: Entry): boolean =>
  (entry.kind === 'task' || (entry.kind === 'act' && isKeyed(entry))) && entry.repeatable !== true

export const waitQuery = (waitSeconds: number) =>
  T.Object({
    wait: T.Optional(T.Boolean({ default: false, description: 'Block until the task has ended' })),
    timeout: T.Optional(
      T.Integer({
        default: waitSeconds,
        minimum: 5,
        maximum: 90,
        description: 'Seconds to block for when wait=true',
      }),
    ),
  })
