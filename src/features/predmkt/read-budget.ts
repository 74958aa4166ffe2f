import { createLru } from '#kernel/async/create-lru.ts'
import { createRateWindow, type RateWindow } from '#kernel/async/rate-window.ts'
import { type BudgetOwner, budgetSpent, Fault } from '#kernel/contract/fault.ts'

/**
 * The requests that reads of people may send to the venue. All that the gateway itself asks, for orders, cancels, exits
 * and the comparison of accounts, passes it by, so that it always has the rest of what the venue allows an address.
 */

export type Service = 'catalogue' | 'books' | 'record'
/** A redemption is an exit: only the share of its own user bounds it. */
export type ReadClass = Service | 'redemption'

const windowMs = 10_000
const slotMs = 100
/**
 * Per window: about half of what the venue allows an address, which is 300 lists of markets, 500 lists of books and 150
 * lists of positions. https://docs.polymarket.com/api-reference/rate-limits
 */
const instanceMax: Readonly<Record<Service, number>> = { catalogue: 150, books: 250, record: 75 }
const userMax: Readonly<Record<ReadClass, number>> = { catalogue: 40, books: 60, record: 20, redemption: 30 }
const usersMax = 10_000

export type ReadBudget = {
  /** Counts requests, or throws `rate_limited` with the time until there is room for them. */
  take(userId: string, readClass: ReadClass, requests?: number): void
  /** Counts a request that was not foreseen, whether there is room for it or not. */
  add(userId: string, service: Service): void
  /** Runs a request; where the venue refuses it as one too many, reads of people pause. */
  send<T>(service: Service, request: () => Promise<T>): Promise<T>
}

export function createReadBudget(nowMs: () => number): ReadBudget {
  const open = (max: number) => createRateWindow({ max, windowMs: windowMs + slotMs, slotMs })
  const instance: Readonly<Record<Service, RateWindow>> = {
    catalogue: open(instanceMax.catalogue),
    books: open(instanceMax.books),
    record: open(instanceMax.record),
  }
  const users = createLru<string, RateWindow>(usersMax)
  const windowOf = (userId: string, readClass: ReadClass): RateWindow => {
    const key = `${readClass}:${userId}`
    const window = users.get(key) ?? open(userMax[readClass])
    users.set(key, window)
    return window
  }
  return {
    take(userId, readClass, requests = 1) {
      const now = nowMs()
      const own = windowOf(userId, readClass)
      const all = readClass === 'redemption' ? undefined : instance[readClass]
      refuse(own.waitMs(requests, 100, now), readClass, 'user')
      refuse(all?.waitMs(requests, 100, now) ?? 0, readClass, 'instance')
      own.add(requests, now)
      all?.add(requests, now)
    },
    add(userId, service) {
      const now = nowMs()
      windowOf(userId, service).add(1, now)
      instance[service].add(1, now)
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
