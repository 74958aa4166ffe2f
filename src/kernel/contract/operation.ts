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
 * A contract has one entry per endpoint, from which the route, validation, OpenAPI, MCP tool, SDK method and CLI
 * command are derived. A schema with `$id` is written out wherever it is used, nested too; the OpenAPI writer
 * registers each such schema once and refers to it.
 */

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type Route = `${Method} /${string}`
/**
 * Who may call an operation. `public` needs no credential, `person` an OAuth token (even before the sign-up),
 * `backend` the key of a backend, and a scope a bearer token that has it.
 */
export type Access = 'public' | 'person' | 'backend' | Scope
export const isScope = (access: Access): access is Scope =>
  access !== 'public' && access !== 'backend' && access !== 'person'
export type RateClass = 'auth' | 'read' | 'money' | 'exit' | 'stream' | 'image'

/**
 * How an operation is shown among the main tools: the few that serve most requests, and that models get by default.
 * `text` says when to take it, and when its neighbour. `fields` are the fields that this form shows, each with a short
 * description; the operation takes its other fields all the same.
 */
export type MainTool = { text: string; fields?: Readonly<Record<string, string>> }

/**
 * Whose calls can succeed, where the access does not say it; lists of tools leave the operation out for all others.
 * `pages` are those of the gateway, `keys` the holders of a private key, `people` the apps of a person, and `decided`
 * these and the agents to whom a person is linked.
 */
export type Callers = 'pages' | 'keys' | 'people' | 'decided'

type Shape = {
  summary: string
  description?: string
  mainTool?: MainTool
  /** True if the interface specification that the gateway implements does not have this operation. */
  isAddition?: true
  access: Access
  callers?: Callers
  params?: T.TObject
  query?: T.TObject
  body?: T.TSchema
  bodyOptional?: boolean
  /** Over HTTP the body's fields may be sent as a query, because not every client sends a body with a DELETE. */
  bodyInQuery?: boolean
  rate?: RateClass
  /** With `failures` only failed calls count against the rate limit, so failures never block successful calls. */
  counts?: 'failures'
  /**
   * Returns how many points of its rate budget a call with this input takes; without this function a call takes
   * one.
   */
  points?: (input: Readonly<Record<string, unknown>>) => number
  /** Fault codes that this operation can answer with, in addition to those of every operation. */
  faults?: readonly string[]
}
export type ReadShape = Shape & {
  output: T.TSchema
  /** For an answer that is an array: the field of its last entry whose value the next page takes as `after`. */
  pageAfter?: string
}
export type ActShape = Shape & {
  output: T.TSchema
  /** A `derived` reply is not stored under the key: a repetition computes it again and changes nothing. */
  replies?: 'derived'
  /** True if a repeated call changes nothing further, so that callers may repeat it without an idempotency key. */
  repeatable?: true
  /**
   * True if the body has a `timestamp` and the agent key's `signature` over the operation's name; clients add both.
   */
  isSigned?: true
  /** The fields of the body whose values the key signs, too. */
  signs?: readonly string[]
}
export type StreamShape = Shape & {
  event: T.TSchema
  /** The schema of an event's data by the event's name, if the data of each event has its own form. */
  events?: Readonly<Record<string, T.TSchema>>
  /**
   * The kind of the durable task that fills the stream: the task is accepted once per key, and any instance can
   * follow it. Callers that send `stream: false` wait for its answer.
   */
  taskKind?: string
  output?: T.TSchema
  priority?: TaskPriority
}
export type TaskShape = Shape & {
  waitSeconds: number
  /**
   * The kind of the task, if several operations create tasks of one kind; otherwise the operation's name is the
   * kind.
   */
  taskKind?: string
  /** True if a repeated call does not move money a second time, so that callers may repeat it without a key. */
  repeatable?: true
  output: T.TSchema
  /** The form of `result` once the task has ended. It is documentation and does not filter: a step may add fields. */
  result?: T.TSchema
  priority?: TaskPriority
  /** True if an operator who ends such a task only reports its outcome, because other records show what it did. */
  isEndReported?: true
  /** True if the call always waits for the end of its task, and answers with the object that `finish` makes. */
  isAnswered?: true
}

type EntryOf<K extends string, S> = { kind: K; route: Route; method: Method; path: string } & S
export type ReadEntry<S extends ReadShape = ReadShape> = EntryOf<'read', S>
export type ActEntry<S extends ActShape = ActShape> = EntryOf<'act', S>
export type StreamEntry<S extends StreamShape = StreamShape> = EntryOf<'stream', S>
export type StreamTaskEntry = StreamEntry & { output: T.TSchema; taskKind: string }
export type TaskEntry<S extends TaskShape = TaskShape> = EntryOf<'task', S>
export type Entry = ReadEntry | ActEntry | StreamEntry | TaskEntry

function toEntry<K extends string, S>(kind: K, route: Route, shape: S): EntryOf<K, S> {
  const space = route.indexOf(' ')
  return { kind, route, method: route.slice(0, space) as Method, path: route.slice(space + 1), ...shape }
}

/** Declares an operation that answers at once and changes nothing. */
export const read = <const S extends ReadShape>(route: Route, shape: S) => toEntry('read', route, shape)
/** Declares an operation that changes something at once, in one transaction, under an idempotency key. */
export const act = <const S extends ActShape>(route: Route, shape: S) => toEntry('act', route, shape)
/** Declares an operation that answers with a stream of events. */
export const stream = <const S extends StreamShape>(route: Route, shape: S) => toEntry('stream', route, shape)
/** Declares an operation that becomes a durable task; the caller may wait for its end. */
export const task = <const S extends TaskShape>(route: Route, shape: S) => toEntry('task', route, shape)

export type Contract = { group: string; about: string; entries: Record<string, Entry> }

/**
 * Operation names come from group and key, never from the path: `earn_deposit`, `client.earn.deposit`. `about` says
 * in the OpenAPI document what the group is for.
 */
export const group = <const N extends string, const E extends Record<string, Entry>>(
  name: N,
  about: string,
  entries: E,
) => ({
  group: name,
  about,
  entries,
})

export const operationName = (groupName: string, key: string): string =>
  `${groupName}_${key}`.replace(/[-A-Z]/g, (match) => (match === '-' ? '_' : `_${match.toLowerCase()}`))

type Part<E, K extends string> = E extends { [P in K]: infer S extends T.TSchema } ? T.Static<S> : unknown
export type InputOf<E> = Part<E, 'body'> & Part<E, 'query'> & Part<E, 'params'>
export type OutputOf<E> = E extends { output: infer S extends T.TSchema } ? T.Static<S> : never
export type EventOf<E> = E extends { event: infer S extends T.TSchema } ? T.Static<S> : never
export type CallerOf<E> = E extends { access: 'public' } ? Caller | null : Caller

export type StreamItem<D = unknown> = { id?: string; event?: string; data: D } | { comment: string }

export type EndedTask = { id: string; status: string; result: JsonObject | null; error: JsonObject | null }

/** How a task operation answers beyond the fields that every task has. */
type TaskAnswers<Input> = {
  /** Returns the user whose task the call of a backend becomes; throws if the backend has no such user. */
  payerOf?: (input: Input, caller: Caller, key: string | undefined) => Promise<Payer>
  /**
   * Makes the answer of an operation with `isAnswered` from its ended task, or throws the fault with which the task
   * ended.
   */
  finish?: (task: EndedTask, payer: Caller) => Promise<object>
  /** Answers a request that makes no task, such as a dry run; returns undefined if the request makes one. */
  answer?: (input: Input, caller: Caller) => Promise<object | undefined>
  answerFields?: (data: JsonObject) => JsonObject
  /** Adds fields to every answer that has a task. */
  everyAnswer?: (task: AnsweredTask) => JsonObject
}
/** The caller who pays for a task, and the idempotency key of the task, which is one of this caller's user. */
export type Payer = { caller: Caller; key?: string }
type AnsweredTask = { id: string; status: string; data: JsonObject }
type TaskFunction<Input> = TaskRules &
  TaskAnswers<Input> & {
    admit: (input: Input, asker: Asker) => Promise<Admission>
    steps: Record<string, Step>
    version?: number
  }

/** Ties the admission of a task to its steps: both use the same data, and each names only steps of this kind. */
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
type StreamTask<Input, Event, Output> = TaskRules & {
  admit: (input: Input, caller: Caller) => Promise<Admission>
  steps: Record<string, Step>
  version?: number
  /** Throws before the first event if the stream cannot resume at the requested event. */
  subscribe: (taskId: string, caller: Caller, request: StreamRequest) => AsyncIterable<StreamItem<Event>>
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
 * Makes an act that reads upstreams before its transaction begins: `prepare` reads and may refuse, and the
 * transaction writes what `prepare` found. A repetition under the same key does not prepare again.
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
 * Runs an act that a person has confirmed, as that person: it first reads and may refuse, and then writes in the
 * transaction that ends its task. `userId` is the user who asked, possibly an agent of the person.
 */
export type ApplyAct = (
  input: JsonObject,
  person: Caller,
  userId: string,
) => Promise<(scope: ActScope) => Promise<object>>
/** Makes an act that waits for a person, in whole or in part; `apply` runs what the person confirmed. */
export const confirmedAct = <F extends (...given: never[]) => Promise<unknown>>(
  run: F,
  apply: ApplyAct,
): F & { apply: ApplyAct } => Object.assign(run, { apply })

/** Identifies the state of an answer; it changes whenever the answer does. */
type Version = () => unknown
/**
 * Makes a public read with one answer for all callers. The HTTP server sends the same bytes again until the version
 * changes.
 */
export const sharedRead = <F extends (...given: never[]) => Promise<unknown>>(
  version: Version,
  run: F,
): F & { version: Version } => Object.assign(run, { version })

/**
 * Returns the version of a shared answer; undefined if each call has its own answer. Nothing from a request may
 * enter a shared answer.
 */
export function versionOf({ entry, run }: Operation): Version | undefined {
  const isFixed = entry.kind === 'read' && entry.access === 'public' && entry.method === 'GET'
  if (!isFixed || entry.params || entry.query || !('version' in run)) return undefined
  return typeof run.version === 'function' ? (run.version as Version) : undefined
}

export function streamTaskOf({ entry, name, run }: Extract<Operation, { entry: { kind: 'stream' } }>) {
  if (entry.taskKind === undefined) throw new Error(`no task fills the stream ${name}`)
  return run as unknown as StreamTask<Record<string, unknown>, unknown, unknown>
}

type UntypedFunctions = { [K in Entry['kind']]: FunctionOf<Extract<Entry, { kind: K }>> }
export type Operation = {
  [K in Entry['kind']]: {
    name: string
    group: string
    about: string
    key: string
    entry: Extract<Entry, { kind: K }>
    run: UntypedFunctions[K]
  }
}[Entry['kind']]

/** Binds functions to a contract by its only cast: operations are untyped from here on. */
export function implement<C extends Contract>(contract: C, functions: Functions<C>): Operation[] {
  return Object.entries(contract.entries).map(
    ([key, entry]) =>
      ({
        name: operationName(contract.group, key),
        group: contract.group,
        about: contract.about,
        key,
        entry,
        run: functions[key],
      }) as unknown as Operation,
  )
}

/** Whether a repeat under the same key returns the same answer, which requires an owner of the key. */
export const isKeyed = ({ kind, method, access }: Entry): boolean =>
  kind !== 'read' && method !== 'GET' && access !== 'public'

/** Whether a task fills the stream: such a stream ends, and can be replaced by one answer. */
export const hasTask = (entry: Entry): entry is StreamTaskEntry =>
  entry.kind === 'stream' && entry.taskKind !== undefined && entry.output !== undefined

/** Whether a repeated call under another idempotency key, or without one, could act twice. */
export const isGuarded = (entry: Entry): boolean =>
  (entry.kind === 'task' || (entry.kind === 'act' && isKeyed(entry))) && entry.repeatable !== true

/** Whether a call may wait for the end of its task; one that is answered always does. */
export const takesWait = (entry: Entry): entry is TaskEntry =>
  entry.kind === 'task' && entry.isAnswered !== true

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
