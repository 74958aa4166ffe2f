import type { Authenticate } from '#invoke/authenticate.ts'
import { budgetSpent, Fault } from '#kernel/fault.ts'
import type { EventStream } from './sse.ts'

export type StreamQuotas = {
  /** Open streams of one user, and waits that hold a connection. */
  streamsPerUser: number
  waitsPerUser: number
  /** How often the credential of each open stream is judged again. */
  checkEveryMs: number
}
export const defaultQuotas: StreamQuotas = { streamsPerUser: 10, waitsPerUser: 256, checkEveryMs: 1_000 }

type OpenStream = {
  userId: string
  authorization: string | undefined
  /** Ends the stream, because the credential that opened it does not count any more. */
  refuse(fault: Fault): void
}
export type OpenStreams = ReturnType<typeof openStreams>

/** What lasts at this instance: streams end with the credential that opened them, and no user has more than a share. */
export function openStreams(authenticate: Authenticate, quotas: StreamQuotas) {
  const openStreamSet = new Set<OpenStream>()
  const eventStreams = new Set<EventStream>()
  const streams = counts()
  const waits = counts()
  let isChecking = false

  const check = async (): Promise<void> => {
    const byCredential = Map.groupBy(openStreamSet, ({ authorization }) => authorization)
    for (const [authorization, held] of byCredential) {
      const fault = await refusalOf(authenticate, authorization)
      if (fault) for (const { refuse } of held) refuse(fault)
    }
  }
  const timer = setInterval(() => {
    if (isChecking || openStreamSet.size === 0) return
    isChecking = true
    void check().finally(() => {
      isChecking = false
    })
  }, quotas.checkEveryMs).unref()

  return {
    /** Throws where the user has a full share already. */
    open(stream: OpenStream): Disposable {
      const { streamsPerUser } = quotas
      if (streams.get(stream.userId) >= streamsPerUser) throw tooManyStreams(streamsPerUser)
      streams.add(stream.userId, 1)
      openStreamSet.add(stream)
      return {
        [Symbol.dispose]() {
          if (openStreamSet.delete(stream)) streams.add(stream.userId, -1)
        },
      }
    },
    eventStreams,
    /** Undefined where the user has a full share: the answer is then given at once. */
    wait(userId: string): Disposable | undefined {
      if (waits.get(userId) >= quotas.waitsPerUser) return undefined
      waits.add(userId, 1)
      return { [Symbol.dispose]: () => waits.add(userId, -1) }
    },
    close(): void {
      clearInterval(timer)
      for (const events of eventStreams) events.finish()
    },
  }
}

function counts() {
  const byUser = new Map<string, number>()
  return {
    get: (userId: string): number => byUser.get(userId) ?? 0,
    add(userId: string, change: number): void {
      const count = (byUser.get(userId) ?? 0) + change
      if (count === 0) byUser.delete(userId)
      else byUser.set(userId, count)
    },
  }
}

/** A store that is away says nothing about a credential. */
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
