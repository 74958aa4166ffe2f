import { Fault } from '#kernel/contract/fault.ts'
import { isSpotAsset } from '#kernel/money/venue-actions.ts'
import type { Urgency } from './urgency.ts'
import { createWeightWindow } from './weight-window.ts'

/** The venue's rate budget per minute and address: the weight of each call, and shares per class and account. */

const order: readonly Urgency[] = ['exit', 'work', 'admission', 'view', 'background']
/** The percentage of the budget that one account may use in each class. */
const accountShare: Readonly<Record<Urgency, number>> = {
  exit: 40,
  work: 40,
  admission: 25,
  view: 25,
  background: 25,
}
/** The percentage that one account may use in all classes together. */
const accountShareOfAll = 60
/**
 * Exits of an account may use the part reserved for exits while the account's exits use at most this percentage of the
 * budget.
 */
const lightShare = 8
/**
 * An account that uses more than the first percentage of the budget must leave the second percentage of the class of
 * new orders to other accounts. A person with several accounts then cannot use up the class.
 */
const heavyAboveShare = 15
const heavyLeavesShare = 10
/** The maximum wait; a call that would wait longer fails with `retry_after`. */
const waitMaxMs: Readonly<Record<Urgency, number>> = {
  exit: 5_000,
  work: 3_000,
  admission: 1_000,
  view: 0,
  background: 0,
}
const className: Readonly<Record<Urgency, string>> = {
  exit: 'exits',
  work: 'accepted tasks',
  admission: 'new orders',
  view: 'views',
  background: 'reconciliation',
}

const light = new Set(['l2Book', 'allMids', 'clearinghouseState', 'orderStatus', 'spotClearinghouseState'])
/** How many items of a list cost one more weight. */
const itemsPerWeight: Readonly<Record<string, number>> = {
  userFillsByTime: 20,
  userFunding: 20,
  userNonFundingLedgerUpdates: 20,
  fundingHistory: 20,
  candleSnapshot: 60,
}
const ordersPerWeight = 40

export const infoWeight = (type: string): number => (light.has(type) ? 2 : type === 'userRole' ? 60 : 20)

/** Returns the extra weight of a list of so many items. */
export function itemsWeight(type: string, items: number): number {
  const perWeight = itemsPerWeight[type]
  return perWeight === undefined ? 0 : Math.floor(items / perWeight)
}

type Order = { a?: unknown; b?: unknown; r?: unknown }
type Action = { type?: unknown; orders?: Order[]; cancels?: unknown[] }

export const actionWeight = ({ orders, cancels }: Action): number =>
  1 + Math.floor((orders ?? cancels ?? []).length / ordersPerWeight)

const reducesExposure = ({ a, b, r }: Order): boolean => (isSpotAsset(Number(a)) ? b === false : r === true)

/** Exits are cancels, withdrawals, and orders that are all reduce-only or spot sales. */
export function actionUrgency({ type, orders }: Action): Urgency {
  if (type === 'cancel' || type === 'withdraw3') return 'exit'
  return type === 'order' && orders?.every(reducesExposure) ? 'exit' : 'work'
}

export type BudgetScope = 'account' | 'gateway'
type Waiting = {
  weight: number
  urgency: Urgency
  account: string | undefined
  untilMs: number
  resolve: () => void
  reject: (f: Fault) => void
}
type Options = {
  perMinute: number
  nowMs: () => number
  after: (ms: number, run: () => void) => () => void
}

export type Budget = {
  /**
   * Resolves when the call may be sent, and throws `unavailable` with `retry_after` if the wait is too long.
   * `account` is the account that the call concerns, whose share also applies.
   */
  admit(weight: number, urgency: Urgency, account?: string): Promise<void>
  /** Adds the weight of a call that is known only after its reply, also to the share of the account. */
  add(weight: number, urgency: Urgency, account?: string): void
  refused(retryAfterMs?: number): void
  answered(): void
  used(): number
  /** The weight that the venue allows per minute; 0 means that there is no limit. */
  readonly perMinute: number
}

const waitingMax = 1_000
const accountsMax = 10_000

export function budgetFault(waitMs: number, urgency: Urgency, scope: BudgetScope, perMinute: number): Fault {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000))
  const name = className[urgency]
  const exhausted = scope === 'account' ? `share of this account for ${name}` : `part for ${name}`
  return new Fault(
    'unavailable',
    `The gateway's request budget at the venue is used up: no weight is left in the ${exhausted}. Nothing was sent; try again in ${seconds} s`,
    {
      extras: {
        retry_after: seconds,
        budget: 'venue_weight',
        budget_class: urgency,
        budget_of: scope,
        budget_per_minute: perMinute,
      },
    },
  )
}

/** The weight per account within the last minute, by class and in total. */
function accountWindows(perMinute: number) {
  const windows = new Map<string, ReturnType<typeof createWeightWindow>>()
  return (account: string, name: Urgency | 'all') => {
    const key = `${name}:${account}`
    const known = windows.get(key)
    if (known) windows.delete(key)
    const hundredths = name === 'all' ? accountShareOfAll : accountShare[name]
    const window = known ?? createWeightWindow(Math.floor((perMinute * hundredths) / 100))
    windows.set(key, window)
    const oldest = windows.size > accountsMax ? windows.keys().next().value : undefined
    if (oldest !== undefined) windows.delete(oldest)
    return window
  }
}

export function createRateBudget({ perMinute, nowMs, after }: Options): Budget {
  const window = createWeightWindow(perMinute)
  const windowOf = accountWindows(perMinute)
  const waiting: Waiting[] = []
  let cancel: (() => void) | undefined

  type Asked = Pick<Waiting, 'weight' | 'urgency' | 'account'>
  /**
   * The part reserved for exits serves only accounts with few exits; the exits of other accounts use the `work` class.
   */
  const classOf = ({ weight, urgency, account }: Asked, now: number): Urgency => {
    if (urgency !== 'exit' || account === undefined) return urgency
    const isLight = windowOf(account, 'exit').used(now) + weight <= (perMinute * lightShare) / 100
    return isLight ? 'exit' : 'work'
  }
  /** The order of a call in the queue: by class, and within a class the calls of heavy accounts come last. */
  const rank = (asked: Asked, now: number) =>
    2 * order.indexOf(classOf(asked, now)) + (leavesShareOf(asked, now) > 0 ? 1 : 0)
  /**
   * Returns the wait for the account's own share. Nothing within this share is reserved for a class, so `exit` is
   * passed, which may use all of it.
   */
  const ownWaitMs = ({ weight, urgency, account }: Asked, now: number) =>
    account === undefined
      ? 0
      : Math.max(
          windowOf(account, urgency).waitMs(weight, 'exit', now),
          windowOf(account, 'all').waitMs(weight, 'exit', now),
        )
  /**
   * Returns the percentage of its class that a call must leave to other accounts. Only a new order of an account with
   * much traffic leaves one; calls for accepted tasks and exits may use the whole class.
   */
  const leavesShareOf = ({ weight, urgency, account }: Asked, now: number): number => {
    if (account === undefined || urgency !== 'admission') return 0
    const isHeavy = windowOf(account, 'all').used(now) + weight > (perMinute * heavyAboveShare) / 100
    return isHeavy ? heavyLeavesShare : 0
  }
  const allWaitMs = (asked: Asked, now: number) =>
    window.waitMs(asked.weight, classOf(asked, now), now, leavesShareOf(asked, now))
  const waitMsOf = (asked: Asked, now: number) => Math.max(ownWaitMs(asked, now), allWaitMs(asked, now))
  const take = ({ weight, urgency, account }: Asked, now: number) => {
    window.add(weight, now)
    if (account === undefined) return
    windowOf(account, urgency).add(weight, now)
    windowOf(account, 'all').add(weight, now)
  }
  const faultOf = (asked: Asked, now: number) => {
    const [own, all] = [ownWaitMs(asked, now), allWaitMs(asked, now)]
    return budgetFault(Math.max(own, all), asked.urgency, own > all ? 'account' : 'gateway', perMinute)
  }

  const arm = () => {
    cancel?.()
    cancel = undefined
    if (waiting.length === 0) return
    const now = nowMs()
    const soonest = waiting.map((each) => Math.min(waitMsOf(each, now), each.untilMs - now))
    cancel = after(Math.max(1, Math.min(...soonest)), drain)
  }

  const drain = () => {
    const now = nowMs()
    let blocked = 2 * order.length
    for (const each of [...waiting]) {
      // A call that waits for the common budget blocks calls of the same or lower rank.
      if (ownWaitMs(each, now) > 0 || rank(each, now) >= blocked) continue
      if (allWaitMs(each, now) > 0) {
        blocked = rank(each, now)
        continue
      }
      waiting.splice(waiting.indexOf(each), 1)
      take(each, now)
      each.resolve()
    }
    for (const late of waiting.filter(({ untilMs }) => untilMs <= now)) {
      waiting.splice(waiting.indexOf(late), 1)
      late.reject(faultOf(late, now))
    }
    arm()
  }

  return {
    perMinute,
    admit(weight, urgency, account) {
      const now = nowMs()
      const asked: Asked = { weight, urgency, account }
      const waitMs = waitMsOf(asked, now)
      const behind = waiting.some((each) => rank(each, now) <= rank(asked, now) && ownWaitMs(each, now) === 0)
      if (waitMs === 0 && !behind) {
        take(asked, now)
        return Promise.resolve()
      }
      if (waitMs > waitMaxMs[urgency] || waitMaxMs[urgency] === 0 || waiting.length >= waitingMax)
        return Promise.reject(faultOf(asked, now))
      return new Promise((resolve, reject) => {
        const mine: Waiting = { ...asked, untilMs: now + waitMaxMs[urgency], resolve, reject }
        const at = waiting.findIndex((each) => rank(each, now) > rank(mine, now))
        waiting.splice(at === -1 ? waiting.length : at, 0, mine)
        arm()
      })
    },
    add: (weight, urgency, account) => take({ weight, urgency, account }, nowMs()),
    refused: (retryAfterMs) => window.refused(nowMs(), retryAfterMs),
    answered: () => window.answered(),
    used: () => window.used(nowMs()),
  }
}

/** The budget of a venue without limits, such as the local one. */
export const unlimitedBudget: Budget = {
  admit: () => Promise.resolve(),
  add: () => {},
  refused: () => {},
  answered: () => {},
  used: () => 0,
  perMinute: 0,
}
