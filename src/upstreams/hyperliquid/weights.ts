import { Fault } from '#kernel/fault.ts'
import { isSpotAsset } from '#kernel/venue.ts'

/** What each call costs of the venue's budget per minute and address, and who may spend how much of it. */

/** Exits and look-ups first, then what was signed already, then new wishes, then what nobody waits for. */
export type Urgency = 'exit' | 'work' | 'admission' | 'background'

const order: readonly Urgency[] = ['exit', 'work', 'admission', 'background']
/** Hundredths of the budget up to which each may go: what is above stays free for the more urgent. */
const share: Readonly<Record<Urgency, number>> = { exit: 100, work: 90, admission: 75, background: 50 }
/** Whoever would wait longer is told to come back. */
const patienceMs: Readonly<Record<Urgency, number>> = {
  exit: 5_000,
  work: 3_000,
  admission: 1_000,
  background: 0,
}

const light = new Set(['l2Book', 'allMids', 'clearinghouseState', 'orderStatus', 'spotClearinghouseState'])
const byItems = new Set(['userFillsByTime', 'userFunding', 'userNonFundingLedgerUpdates'])
const itemsPerWeight = 20
const ordersPerWeight = 40

export const infoWeight = (type: string): number => (light.has(type) ? 2 : type === 'userRole' ? 60 : 20)

/** Long lists cost more, which only their answer shows. */
export const itemsWeight = (type: string, answer: unknown): number =>
  byItems.has(type) && Array.isArray(answer) ? Math.floor(answer.length / itemsPerWeight) : 0

type Order = { a?: unknown; b?: unknown; r?: unknown }
type Action = { type?: unknown; orders?: Order[]; cancels?: unknown[] }

export const actionWeight = ({ orders, cancels }: Action): number =>
  1 + Math.floor((orders ?? cancels ?? []).length / ordersPerWeight)

const bringsHome = ({ a, b, r }: Order): boolean => (isSpotAsset(Number(a)) ? b === false : r === true)

/** Orders that only reduce close a position; on spot a sale parts with what is held. */
export function actionUrgency({ type, orders }: Action): Urgency {
  if (type === 'cancel') return 'exit'
  return type === 'order' && orders?.every(bringsHome) ? 'exit' : 'work'
}

/** A little more than the venue's minute, since it counts when a request arrives and not when it leaves. */
const windowMs = 61_000
const slotMs = 250
const silenceFirstMs = 1_000
const silenceMostMs = 60_000

/** What was spent within the last minute. Never more than the budget, wherever the venue's own minute begins. */
export function weightWindow(perMinute: number) {
  const slots: { atMs: number; weight: number }[] = []
  let used = 0
  let silentUntilMs = 0
  let refusals = 0

  const forget = (nowMs: number) => {
    while (slots[0] && slots[0].atMs + windowMs <= nowMs) used -= slots.shift()!.weight
  }
  const add = (weight: number, nowMs: number) => {
    const last = slots.at(-1)
    used += weight
    if (last && nowMs - last.atMs < slotMs) {
      last.atMs = nowMs
      last.weight += weight
    } else slots.push({ atMs: nowMs, weight })
  }

  return {
    /** How long until so much is free for so urgent a call; 0 where it is now. */
    waitMs(weight: number, urgency: Urgency, nowMs: number): number {
      forget(nowMs)
      const silentMs = Math.max(0, silentUntilMs - nowMs)
      const most = Math.max(weight, Math.floor((perMinute * share[urgency]) / 100))
      let over = used + weight - most
      for (const { atMs, weight: freed } of over > 0 ? slots : []) {
        over -= freed
        if (over <= 0) return Math.max(silentMs, atMs + windowMs - nowMs)
      }
      return silentMs
    },
    add,
    /** The venue said that it is too much: it knows better, so nothing is sent for a while. */
    refused(nowMs: number, retryAfterMs?: number) {
      refusals += 1
      const guessMs = Math.min(silenceMostMs, silenceFirstMs * 2 ** Math.min(refusals - 1, 10))
      silentUntilMs = Math.max(silentUntilMs, nowMs + Math.min(retryAfterMs ?? guessMs, silenceMostMs))
    },
    answered() {
      refusals = 0
    },
    used(nowMs: number): number {
      forget(nowMs)
      return used
    },
  }
}

type Waiting = { weight: number; urgency: Urgency; untilMs: number; go: () => void; give: (f: Fault) => void }
type Options = {
  perMinute: number
  nowMs: () => number
  /** Runs something later; what is returned takes it back. */
  after: (ms: number, run: () => void) => () => void
}

export type Budget = {
  /** Resolves when the call may leave; Fault `unavailable` with the time to wait where that is too far away. */
  admit(weight: number, urgency: Urgency): Promise<void>
  /** Costs that came to light with the answer. */
  add(weight: number): void
  refused(retryAfterMs?: number): void
  answered(): void
  used(): number
}

const waitingMost = 1_000

export const tooMuch = (waitMs: number): Fault =>
  new Fault('unavailable', "The venue's request budget is used up for the moment; nothing was sent", {
    extras: { retry_after: Math.max(1, Math.ceil(waitMs / 1_000)) },
  })

export function rateBudget({ perMinute, nowMs, after }: Options): Budget {
  const window = weightWindow(perMinute)
  const waiting: Waiting[] = []
  let cancel: (() => void) | undefined

  const rank = ({ urgency }: Pick<Waiting, 'urgency'>) => order.indexOf(urgency)

  const arm = () => {
    cancel?.()
    cancel = undefined
    const [first] = waiting
    if (!first) return
    const freeMs = window.waitMs(first.weight, first.urgency, nowMs())
    const soonest = Math.min(freeMs, ...waiting.map(({ untilMs }) => untilMs - nowMs()))
    cancel = after(Math.max(1, soonest), drain)
  }

  const drain = () => {
    const now = nowMs()
    for (let first = waiting[0]; first && window.waitMs(first.weight, first.urgency, now) === 0; ) {
      waiting.shift()
      window.add(first.weight, now)
      first.go()
      first = waiting[0]
    }
    for (const late of waiting.filter(({ untilMs }) => untilMs <= now)) {
      waiting.splice(waiting.indexOf(late), 1)
      late.give(tooMuch(window.waitMs(late.weight, late.urgency, now)))
    }
    arm()
  }

  return {
    admit(weight, urgency) {
      const now = nowMs()
      const waitMs = window.waitMs(weight, urgency, now)
      const behind = waiting.some((each) => rank(each) <= rank({ urgency }))
      if (waitMs === 0 && !behind) {
        window.add(weight, now)
        return Promise.resolve()
      }
      if (waitMs > patienceMs[urgency] || patienceMs[urgency] === 0 || waiting.length >= waitingMost)
        return Promise.reject(tooMuch(waitMs))
      return new Promise((go, give) => {
        const mine: Waiting = { weight, urgency, untilMs: now + patienceMs[urgency], go, give }
        const at = waiting.findIndex((each) => rank(each) > rank(mine))
        waiting.splice(at === -1 ? waiting.length : at, 0, mine)
        arm()
      })
    },
    add: (weight) => window.add(weight, nowMs()),
    refused: (retryAfterMs) => window.refused(nowMs(), retryAfterMs),
    answered: () => window.answered(),
    used: () => window.used(nowMs()),
  }
}

/** Where nobody counts, as at the local venue. */
export const noBudget: Budget = {
  admit: () => Promise.resolve(),
  add: () => {},
  refused: () => {},
  answered: () => {},
  used: () => 0,
}
