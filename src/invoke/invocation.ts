import type { Invoke, InvokeOptions, InvokeRequest } from '#durable/accept/operation-call.ts'
import { type Caller, isOwnClient } from '#kernel/contract/caller.ts'
import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import { Fault, internalFault } from '#kernel/contract/fault.ts'
import {
  type Entry,
  type Operation,
  type RateClass,
  type StreamItem,
  versionOf,
} from '#kernel/contract/operation.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'
import type { NumberSources } from '#kernel/wire/json.ts'
import { type Authenticate, type AuthenticateBackend, authorize, noBackends } from './authorize.ts'
import { type Pacing, pacedLimits, startPacing } from './heavy-caller-pacing.ts'
import { inputLocations, locateIssues } from './input-location.ts'
import { inputReaders, type ReadFlatInput, type ReadInput } from './input-validation.ts'
import { createOverload, type LoadSettings } from './load-shedding.ts'
import {
  type BudgetState,
  defaultLimits,
  type Limits,
  memoryPointStore,
  type PointStore,
  type RateLimitResult,
  type RateLimits,
  rateLimits,
} from './rate-limits.ts'
import { filterBySchema } from './schema-filter.ts'
import { defaultQuotas, type Quotas, userQuotas } from './user-quotas.ts'

export type InvocationDeps = {
  execute: Invoke
  authenticate: Authenticate
  authenticateBackend?: AuthenticateBackend
  limits?: Limits
  points?: PointStore
  load?: Partial<LoadSettings>
  pacing?: Pacing
  quotas?: Partial<Quotas>
}

export type Credentials = {
  authorization: string | undefined
  backendKey?: string | undefined
  address: string
}

/** The decisions about a call that are made before its input is read. */
export type Admitted = {
  caller: Caller | null
  /** The owner of the budget on which the call is counted. */
  principal: string
  /** The credential, which is checked again while a stream is open. */
  authorization: string | undefined
  /** The state of the budget; absent if the class of the operation is not limited. */
  budget: BudgetState | undefined
  /** The fault of a spent budget: `call` throws it, and an HTTP or MCP server may throw it earlier. */
  refusal: Fault | undefined
  /**
   * The fault of a spent budget, for an operation of which only failures count: if the call fails, it fails with this
   * fault.
   */
  refusalOfFailure: Fault | undefined
}

export type Outcome =
  | { kind: 'answer'; body: unknown; replayed: boolean; key?: string }
  | {
      kind: 'stream'
      /** The items of the stream, which throw only faults, and throw one if the credential becomes invalid. */
      items: AsyncIterable<StreamItem>
      replayed?: boolean
      key?: string
    }

export type InvocableOperation = {
  operation: Operation
  /** Returns the decisions at once if nothing has to be read for them, and else a promise. */
  admit(credentials: Credentials): Admitted | Promise<Admitted>
  /** Returns the answer that is the same for every caller, if its version has not changed since it was computed. */
  shared(): Outcome | undefined
  readInput: ReadInput
  readFlatInput: ReadFlatInput
  call(
    admitted: Admitted,
    input: Record<string, unknown>,
    options: InvokeOptions,
    request: InvokeRequest,
  ): Promise<Outcome>
}

/** A caller without an operation, for requests of a transport's own protocol, such as MCP. */
export type Identified = { caller: Caller; principal: string }

export type Invocation = {
  /**
   * The source texts of numbers. The JSON parser of each transport fills them in, so that numbers keep their digits.
   */
  sources: NumberSources
  limits: RateLimits
  prepare(operation: Operation): InvocableOperation
  /** Reads the credential as `admit` does, and counts only failures. */
  identify(credentials: Credentials): Promise<Identified>
  close(): Promise<void>
}

export const rateClassOf = (entry: Entry): RateClass => {
  if (entry.rate) return entry.rate
  if (entry.kind === 'stream') return 'stream'
  return entry.kind === 'read' ? 'read' : 'money'
}

/**
 * The logic that HTTP, MCP and all other transports share: admission by load, credential, scope and budget; then input,
 * call, output and faults.
 */
export function createInvocation({
  execute,
  authenticate,
  authenticateBackend = noBackends,
  limits: points = defaultLimits,
  points: store = memoryPointStore(),
  load: loadSettings,
  pacing = startPacing(),
  quotas: quotaSettings,
}: InvocationDeps): Invocation {
  const sources: NumberSources = new WeakMap()
  const unpaced = rateLimits(points, store)
  const load = createOverload(loadSettings)
  const limits = pacedLimits(unpaced, { pacing, load })
  const readers = inputReaders(sources)
  const quotas = userQuotas(authenticate, { ...defaultQuotas, ...quotaSettings })

  return {
    sources,
    limits,
    async close() {
      load.close()
      pacing.close()
      await quotas.close()
    },
    async identify({ authorization, address }) {
      const caller = await countingRefusals({ authorization, address: addressKey(address) }, limits, () =>
        authenticate(authorization),
      )
      return { caller, principal: principalOf(caller) }
    },
    prepare(operation) {
      const { entry } = operation
      const locationOf = inputLocations(entry)
      const output = 'output' in entry ? plainSchema(entry.output) : undefined
      const isStreamTask = entry.kind === 'stream' && entry.taskKind !== undefined
      const mayAct = entry.kind === 'task' || entry.kind === 'act' || isStreamTask
      const toFault = (error: unknown, options: { mayHaveActed: boolean }): Fault =>
        error instanceof Fault ? locateIssues(error, locationOf) : internalFault(error, options)

      const version = versionOf(operation)
      let known: { version: unknown; outcome: Outcome } | undefined
      const call: InvocableOperation['call'] = async (admitted, input, options, request) => {
        if (admitted.refusal) throw admitted.refusal
        const { caller, authorization } = admitted
        const pointsFault = await countPoints(entry, admitted.principal, input, unpaced)
        if (pointsFault) throw pointsFault
        const current = version?.()
        const userId = caller?.userId ?? ''
        if (isStreamTask && input.stream !== false) quotas.assertRoom(userId)
        using waiting = options.wait ? quotas.wait(userId) : undefined
        // If the user has a full share of waits, the answer shows the current state of the task, which goes on.
        const allowed = options.wait && !waiting ? { ...options, timeoutMs: 0 } : options
        const reply = await execute({ operation, input, caller, options: allowed, request }).catch(
          (error: unknown) => {
            const fault = toFault(error, { mayHaveActed: mayAct })
            throw fault.status < 500 ? (admitted.refusalOfFailure ?? fault) : fault
          },
        )
        if (reply.kind === 'stream') {
          const { items, ...facts } = reply
          const toStreamFault = (error: unknown) => toFault(error, { mayHaveActed: false })
          const opened = { userId, authorization, items, toFault: toStreamFault, isAccepted: isStreamTask }
          return { ...facts, items: quotas.stream(opened) }
        }
        const body = output ? filterBySchema(output, reply.body) : reply.body
        const outcome: Outcome = { ...reply, body }
        if (version) known = { version: current, outcome }
        return outcome
      }
      return {
        operation,
        admit: admission(entry, { authenticate, authenticateBackend, limits, load }),
        ...readers(operation),
        shared: () => (known && known.version === version?.() ? known.outcome : undefined),
        call,
      }
    },
  }
}

/** Counts the points beyond the first, which admission counted before the input was read. */
async function countPoints(
  entry: Entry,
  principal: string,
  input: Record<string, unknown>,
  limits: RateLimits,
): Promise<Fault | undefined> {
  const more = (entry.points?.(input) ?? 1) - 1
  return more > 0 ? (await limits.consume(rateClassOf(entry), principal, more)).fault : undefined
}

/** The pages of the gateway count separately, so that no app of a person uses up their calls. */
const principalOf = ({ userId, person, backend }: Caller): string => {
  if (backend) return `backend:${backend.id}`
  return person && isOwnClient(person.clientId) ? `pages:${userId}` : `user:${userId}`
}

/**
 * Counts a bad credential only after its look-up, so that bad credentials never block a good one from the same address.
 * A request without a credential is not counted, because clients send such a request to discover how to authenticate.
 */
async function countingRefusals<T>(
  { authorization, backendKey, address }: Credentials,
  limits: RateLimits,
  look: () => Promise<T>,
): Promise<T> {
  try {
    return await look()
  } catch (error) {
    const isGuess =
      (authorization ?? backendKey) !== undefined && error instanceof Fault && error.status === 401
    throw (isGuess ? (await limits.consume('refused', address)).fault : undefined) ?? error
  }
}

type AdmissionDeps = {
  authenticate: Authenticate
  authenticateBackend: AuthenticateBackend
  limits: RateLimits
  load: ReturnType<typeof createOverload>
}

function admission(entry: Entry, { authenticate, authenticateBackend, limits, load }: AdmissionDeps) {
  const rate = rateClassOf(entry)
  const authorized = ({ authorization, backendKey, address }: Credentials): Promise<Caller | null> =>
    entry.access === 'backend'
      ? countingRefusals({ authorization: undefined, backendKey, address }, limits, () =>
          authenticateBackend(backendKey),
        )
      : countingRefusals({ authorization, address }, limits, () =>
          authorize(entry.access, authorization, authenticate),
        )
  const countsFailures = entry.counts === 'failures'
  const toAdmitted = (
    caller: Caller | null,
    principal: string,
    authorization: string | undefined,
    { budget, fault }: RateLimitResult,
  ): Admitted => ({
    caller,
    principal,
    authorization,
    budget,
    refusal: countsFailures ? undefined : fault,
    refusalOfFailure: countsFailures ? fault : undefined,
  })
  const admitCaller = async (credentials: Credentials): Promise<Admitted> => {
    const { authorization, address } = credentials
    const caller = await authorized(credentials)
    const principal = caller && rate !== 'auth' ? principalOf(caller) : address
    return toAdmitted(caller, principal, authorization, await limits.consume(rate, principal))
  }
  return ({ authorization, backendKey, address: given }: Credentials): Admitted | Promise<Admitted> => {
    const overloadFault = load.refusal(rate, { isHeavy: false })
    if (overloadFault) throw overloadFault
    const address = addressKey(given)
    if (entry.access !== 'public' || authorization !== undefined)
      return admitCaller({ authorization, backendKey, address })
    const counted = limits.consume(rate, address)
    return counted instanceof Promise
      ? counted.then((result) => toAdmitted(null, address, undefined, result))
      : toAdmitted(null, address, undefined, counted)
  }
}
