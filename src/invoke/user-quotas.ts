import { createKeyCounts } from '#kernel/async/key-counts.ts'
import { repeat } from '#kernel/async/repeat.ts'
import { budgetSpent, Fault } from '#kernel/contract/fault.ts'
import type { StreamItem } from '#kernel/contract/operation.ts'
import type { Authenticate } from './authorize.ts'

export type Quotas = {
  streamsPerUser: number
  waitsPerUser: number
  checkEveryMs: number
}
export const defaultQuotas: Quotas = { streamsPerUser: 10, waitsPerUser: 256, checkEveryMs: 1_000 }

type Items = AsyncIterable<StreamItem>
type NewStream = {
  userId: string
  authorization: string | undefined
  items: Items
  toFault: (error: unknown) => Fault
  /** True if the task that fills the stream was accepted already, so that the stream is no longer refused. */
  isAccepted?: boolean
}
type OpenStream = { authorization: string | undefined; refuse(fault: Fault): void }

export type UserQuotas = {
  /** Throws if the user has a full share of streams, before a task that fills one is accepted. */
  assertRoom(userId: string): void
  /**
   * Returns the items until the credential that opened the stream becomes invalid; they throw only faults. Throws
   * if the user already has a full share of streams.
   */
  stream(wanted: NewStream): Items
  /**
   * Counts a wait until it is disposed. Returns undefined if the user already has the maximum number of waits; the
   * answer is then sent at once.
   */
  wait(userId: string): Disposable | undefined
  close(): Promise<void>
}

/** Limits the streams and the waits that each user may have open on this instance, over all transports together. */
export function userQuotas(authenticate: Authenticate, quotas: Quotas): UserQuotas {
  const open = new Set<OpenStream>()
  const streams = createKeyCounts()
  const waits = createKeyCounts()
  const checking = repeat(() => checkCredentials(open, authenticate), { everyMs: quotas.checkEveryMs })

  const assertRoom = (userId: string): void => {
    const { streamsPerUser } = quotas
    if (streams.get(userId) >= streamsPerUser) throw tooManyStreams(streamsPerUser)
  }
  return {
    assertRoom,
    stream({ userId, authorization, items, toFault, isAccepted = false }) {
      if (!isAccepted) assertRoom(userId)
      const release = () => {
        if (open.delete(entry)) streams.remove(userId)
      }
      const opened = revocable({ items, toFault, release })
      const entry: OpenStream = { authorization, refuse: opened.refuse }
      streams.add(userId)
      open.add(entry)
      return opened.items
    },
    wait(userId) {
      if (waits.get(userId) >= quotas.waitsPerUser) return undefined
      waits.add(userId)
      return { [Symbol.dispose]: () => waits.remove(userId) }
    },
    close: async () => checking[Symbol.asyncDispose](),
  }
}

async function checkCredentials(open: ReadonlySet<OpenStream>, authenticate: Authenticate): Promise<void> {
  const byCredential = Map.groupBy(open, ({ authorization }) => authorization)
  for (const [authorization, held] of byCredential) {
    const fault = await refusalOf(authenticate, authorization)
    if (fault) for (const { refuse } of held) refuse(fault)
  }
}

/**
 * Makes a stream that can be refused at any time, even while its next item is awaited. The abort signal of the request
 * ends a producer that still waits.
 */
function revocable({
  items,
  toFault,
  release,
}: Pick<NewStream, 'items' | 'toFault'> & { release: () => void }): {
  items: Items
  refuse(fault: Fault): void
} {
  const iterator = items[Symbol.asyncIterator]()
  let refusal: Fault | undefined
  let rejectNext: (fault: Fault) => void = () => undefined
  const end = (): void => {
    release()
    void iterator.return?.().catch(() => undefined)
  }
  const next = async (): Promise<IteratorResult<StreamItem>> => {
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<StreamItem>>()
    rejectNext = reject
    if (refusal) reject(refusal)
    else iterator.next().then(resolve, reject)
    try {
      const found = await promise
      if (found.done) release()
      return found
    } catch (error) {
      end()
      throw toFault(error)
    }
  }
  const finish = async (): Promise<IteratorResult<StreamItem>> => {
    end()
    return { done: true, value: undefined }
  }
  return {
    items: { [Symbol.asyncIterator]: () => ({ next, return: finish }) },
    refuse(fault) {
      refusal = fault
      rejectNext(fault)
    },
  }
}

/**
 * Returns the fault of a credential that is no longer valid. Any other failure, such as an unreachable store, says
 * nothing about the credential.
 */
async function refusalOf(
  authenticate: Authenticate,
  authorization: string | undefined,
): Promise<Fault | undefined> {
  try {
    await authenticate(authorization)
    return undefined
  } catch (error) {
    return error instanceof Fault && (error.status === 401 || error.status === 403) ? error : undefined
  }
}

const retryAfterSeconds = 1

const tooManyStreams = (max: number): Fault =>
  budgetSpent('rate_limited', `This user has ${max} open streams already; close one of them first`, {
    budget: 'open_streams',
    owner: 'user',
    retryAfterSeconds,
  })
