import { createLru } from '#kernel/async/create-lru.ts'
import { createRateWindow, type RateWindow } from '#kernel/async/rate-window.ts'
import { type BudgetOwner, budgetSpent, Fault } from '#kernel/contract/fault.ts'

/**
 * The requests that reads of people may send to the venue. All that the gateway itself asks, for orders, cancels, exits
 * and the comparison of accounts, passes it by, so that it always has the rest of what the venue allows an address.
 */

export type Service = 'catalogue' | 'books' | 'record' | 'account'
/** A redemption is an exit, and an order must not wait for readers: only the share of their own user bounds them. */
export type ReadClass = Service | 'redemption' | 'admission'

const windowMs = 10_000
const slotMs = 100
/**
 * Per window: about half of what the venue allows an address, which is 300 lists of markets, 500 lists of books and 150
 * lists of positions. https://docs.polymarket.com/api-reference/rate-limits
 */
const instanceMax: Readonly<Record<Service, number>> = {
  catalogue: 150,
  books: 250,
  record: 75,
  account: 150,
}
const userMax: Readonly<Record<ReadClass, number>> = {
  catalogue: 40,
  books: 60,
  record: 20,
  account: 10,
  redemption: 30,
  admission: 40,
}
const usersMax = 10_000

export type ReadBudget = {
  /**
   * Counts requests, or throws `rate_limited` with the time until there is room for them. More than a user may send in
   * a window count as that many.
   */
  take(userId: string, readClass: ReadClass, requests?: number): void
  /** Counts requests that were not foreseen, whether there is room for them or not. */
  add(userId: string, service: Service, requests?: number): void
  /** Runs a request; where the venue refuses it as one too many, reads of people pause. */
  send<T>(service: Service, request: () => Promise<T>): Promise<T>
}

const openWindow = (max: number): RateWindow => createRateWindow({ max, windowMs: windowMs + slotMs, slotMs })

/** The part of the window of the instance that is left to users who have taken nothing of it. */
const newcomersPart = 0.2
/** The requests that such a user may send: a quote reads two lists of markets and two books. */
const firstReads = 2

/**
 * The window of the instance for one service. Up to its half everybody takes what the own share allows. Beyond it a user
 * may have taken no more than what is left, without the part of newcomers, divided by the users of this window, so that
 * a few users never take all of it.
 */
function createSharedWindow(service: Service) {
  const max = instanceMax[service]
  const all = openWindow(max)
  /** When each user last took something; the user who took longest ago comes first. */
  const tookAtMs = new Map<string, number>()
  const countUsers = (userId: string, now: number): number => {
    for (const [id, atMs] of tookAtMs) {
      if (now - atMs <= windowMs + slotMs) break
      tookAtMs.delete(id)
    }
    return tookAtMs.size + (tookAtMs.has(userId) ? 0 : 1)
  }
  return {
    waitMs(userId: string, own: RateWindow, requests: number, now: number): number {
      const wait = all.waitMs(requests, 100, now)
      const used = all.used(now)
      if (wait > 0 || used + requests <= max / 2) return wait
      const left = max * (1 - newcomersPart) - used
      const share = Math.floor(left / countUsers(userId, now))
      if (own.used(now) === 0 && requests <= firstReads) return 0
      if (requests > share) return all.waitMs(requests, 50, now)
      return own.waitMs(requests, (100 * share) / userMax[service], now)
    },
    add(userId: string, requests: number, now: number): void {
      all.add(requests, now)
      tookAtMs.delete(userId)
      tookAtMs.set(userId, now)
    },
    answered: () => all.answered(),
    refused: (now: number, retryAfterMs?: number) => all.refused(now, retryAfterMs),
  }
}

export function createReadBudget(nowMs: () => number): ReadBudget {
  const instance = {
    catalogue: createSharedWindow('catalogue'),
    books: createSharedWindow('books'),
    record: createSharedWindow('record'),
    account: createSharedWindow('account'),
  }
  const users = createLru<string, RateWindow>(usersMax)
  const windowOf = (userId: string, readClass: ReadClass): RateWindow => {
    const key = `${readClass}:${userId}`
    const window = users.get(key) ?? openWindow(userMax[readClass])
    users.set(key, window)
    return window
  }
  return {
    take(userId, readClass, requests = 1) {
      const now = nowMs()
      const own = windowOf(userId, readClass)
      const all = readClass === 'redemption' || readClass === 'admission' ? undefined : instance[readClass]
      const weight = Math.min(requests, userMax[readClass])
      refuse(own.waitMs(weight, 100, now), readClass, 'user')
      refuse(all?.waitMs(userId, own, weight, now) ?? 0, readClass, 'instance')
      own.add(weight, now)
      all?.add(userId, weight, now)
    },
    add(userId, service, requests = 1) {
      const now = nowMs()
      windowOf(userId, service).add(requests, now)
      instance[service].add(userId, requests, now)
    },
    async send(service, request) {
      try {
        const reply = await request()
        instance[service].answered()
        return reply
      } catch (error) {
        const { reason, retry_after: seconds } = error instanceof Fault ? error.extras : {}
        if (reason === 'rate_limited')
          instance[service].refused(nowMs(), typeof seconds === 'number' ? seconds * 1_000 : undefined)
        throw error
      }
    },
  }
}

function refuse(waitMs: number, readClass: ReadClass, owner: BudgetOwner): void {
  if (waitMs <= 0) return
  const retryAfterSeconds = Math.ceil(waitMs / 1_000)
  const whose = owner === 'user' ? 'of this user' : 'of all users together'
  throw budgetSpent(
    'rate_limited',
    `Too many reads ${whose} at the prediction market; try again in ${retryAfterSeconds} s`,
    { budget: `predmkt_${readClass}`, owner, retryAfterSeconds },
  )
}
