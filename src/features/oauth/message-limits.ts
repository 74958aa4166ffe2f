import { addressKey } from '#kernel/wire/ip-address-key.ts'
import type { Budget, SignInLimits } from './sign-in-limits.ts'

/** The most messages per window of 15 minutes. */
const maxima = { pair: 5, account: 10, address: 20, browser: 5 } as const
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/**
 * A mailbox whose budgets are spent still gets this many messages a day, but only the first one that a network address
 * requests.
 */
const firstMax = 50
/** A mailbox gets this many messages a day without a pause. */
const unpausedMax = 10
const pauseMsMax = 60 * minuteMs

/** The pause after message number `unpausedMax` of a day is a minute, and it doubles with each further message. */
const pauseMs = (sent: number): number => Math.min(minuteMs * 2 ** (sent - unpausedMax), pauseMsMax)

export type MessageLimits = {
  /** Counts a message, and returns the budgets that it was taken from, or undefined if it exceeds a limit. */
  take(email: string, address: string): Promise<Budget[] | undefined>
  takeOfBrowser(browser: string): Promise<Budget[] | undefined>
  /** Counts a message to a mailbox which says that no account has it; a mailbox gets one such message a day. */
  takeUnknown(email: string): Promise<Budget[] | undefined>
}

export function createMessageLimits(limits: SignInLimits): MessageLimits {
  const takeAll = async (budgets: Budget[]): Promise<Budget[] | undefined> =>
    (await limits.take(budgets)).length === 0 ? budgets : undefined

  const takeShared = async (email: string): Promise<Budget[] | undefined> => {
    const day = { name: `message|day|${email}`, max: Number.POSITIVE_INFINITY, windowMs: dayMs }
    const sent = await limits.count(day)
    const pause = { name: `message|pause|${email}`, max: 1, windowMs: pauseMs(sent) }
    const budgets = [
      { name: `message|${email}`, max: maxima.account },
      ...(sent < unpausedMax ? [] : [pause]),
    ]
    const over = await limits.take(budgets)
    if (over.length === 0) {
      await limits.take([day])
      return [...budgets, day]
    }
    await limits.giveBack(budgets)
    return undefined
  }

  return {
    /**
     * A message that the limits of a network address refuse does not count against the mailbox. If strangers use up the
     * mailbox's budget, each new network address still has its first message.
     */
    async take(email, address) {
      const from = addressKey(address)
      const pair = `message|${email}|${from}`
      const first = { name: pair, max: 1 }
      const own = [
        { name: pair, max: maxima.pair },
        { name: `message|${from}`, max: maxima.address },
      ]
      const over = await limits.take([...own, first])
      if (over.some((each) => each !== first)) return undefined
      const shared = await takeShared(email)
      if (shared) return [...own, ...shared]
      if (over.length > 0) return undefined
      const further = await takeAll([{ name: `message|first|${email}`, max: firstMax, windowMs: dayMs }])
      return further && [...own, ...further]
    },
    takeOfBrowser: (browser) => takeAll([{ name: `message|browser|${browser}`, max: maxima.browser }]),
    takeUnknown: (email) => takeAll([{ name: `message|unknown|${email}`, max: 1, windowMs: dayMs }]),
  }
}
