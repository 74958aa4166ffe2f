import { currencyAt, requireChain } from './chains.ts'
import type { Payments, UnsignedPayout, WithDeposit } from './payments.ts'
import { afterStep, type PayoutPlan, type PlannedStep } from './request.ts'
import type { Store } from './store.ts'

/** Payouts of a solver that does not do as it quoted: in parts, late, twice, short, in another token, or of others. */

/** A step as a test asks for it: its share is that of the quote, or of the deposit. */
export type WantedStep = Omit<PlannedStep, 'units' | 'currency'> & { shareBps: number; currency?: string }

type Wanted = { steps: readonly WantedStep[]; count: number }
/** For the next deposits of everybody where no user is named. */
export type WantedPayouts = Wanted & { user?: string | undefined }

const fullBps = 10_000n

function planOf(request: WithDeposit, steps: readonly WantedStep[], nowMs: number): PayoutPlan {
  const { deposit, quotedOut, destinationCurrency } = request
  return {
    sinceMs: nowMs,
    paidTxs: [],
    steps: steps.map(({ shareBps, currency, ...step }): PlannedStep => {
      const whole = step.type === 'fill' ? quotedOut : deposit.units
      const usual = step.type === 'fill' ? destinationCurrency : deposit.currency
      return {
        ...step,
        currency: currency ?? usual,
        units: String((BigInt(whole) * BigInt(Math.round(shareBps * 100))) / (fullBps * 100n)),
      }
    }),
  }
}

/** The payout of the next step; undefined where it pays nothing. */
function payoutOf(request: WithDeposit, step: PlannedStep): UnsignedPayout | undefined {
  if (step.units === '0') return undefined
  const isFill = step.type === 'fill'
  const chainId = isFill ? request.destinationChainId : request.deposit.chainId
  const currency = currencyAt(requireChain(chainId), step.currency)
  if (!currency) return undefined
  return {
    type: step.type,
    source: 'wallet',
    chainId,
    currency: currency.address,
    units: step.units,
    to: isFill ? request.recipient : (request.refundTo ?? request.user),
  }
}

type PlanDeps = { store: Store; payments: Payments; nowMs: () => number }
export type WithPlan = WithDeposit & { plan: PayoutPlan }

export const hasPlan = (request: WithDeposit): request is WithPlan => request.plan !== undefined

export const createPayoutPlans = ({ store, payments, nowMs }: PlanDeps) => {
  /** By the user of the deposit in lower case; of every user under an empty name. */
  const wanted = new Map<string, Wanted>()
  return {
    set: ({ steps, count, user = '' }: WantedPayouts): void => {
      wanted.set(user.toLowerCase(), { steps, count })
    },
    /** Whether the deposit is paid by a plan from now on. */
    begin: (request: WithDeposit): boolean => {
      const own = request.user.toLowerCase()
      const name = wanted.has(own) ? own : ''
      const found = wanted.get(name)
      if (!found) return false
      const { steps, count } = found
      if (count > 1) wanted.set(name, { steps, count: count - 1 })
      else wanted.delete(name)
      store.save({ ...request, plan: planOf(request, steps, nowMs()) })
      return true
    },
    /** Takes the next step, once its time has come. */
    follow: async (request: WithPlan): Promise<void> => {
      const { sinceMs, steps } = request.plan
      const [step] = steps
      if (!step || nowMs() < sinceMs + step.afterMs) return
      const payout = payoutOf(request, step)
      if (payout) await payments.pay(request, payout)
      else store.save(afterStep(request, undefined, nowMs()))
    },
  }
}
