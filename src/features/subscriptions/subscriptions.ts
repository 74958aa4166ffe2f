import { Fault } from '#kernel/contract/fault.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import { type CancelDeps, createCancel } from './cancel.ts'
import { type CheckoutDeps, createCheckout } from './checkout.ts'
import { contract } from './contract.ts'
import { type PricedPlan, usdOf } from './plan-catalogue.ts'
import { subscriptionView } from './plan-views.ts'

export type SubscriptionsDeps = CheckoutDeps & CancelDeps

const planView = ({ name, priceId, cents, interval, credits }: PricedPlan) => ({
  plan: name,
  price_id: priceId,
  price_usd: usdOf(cents),
  interval,
  credits: Number(credits),
  changes: `${credits} credits for the chat with each paid ${interval}; what is unspent ends with it`,
})

export const createSubscriptions = (deps: SubscriptionsDeps): Operation[] =>
  implement(contract, {
    checkout: createCheckout(deps),
    async plans() {
      const plans = await deps.catalogue.sold().catch((cause: unknown) => {
        if (!(cause instanceof Fault)) throw cause
        throw new Fault('unavailable', 'The payment provider does not name its prices now', { cause })
      })
      return { plans: plans.map(planView) }
    },
    show: (_input, { userId }) => subscriptionView(deps.db, deps.catalogue, userId),
    cancel: createCancel(deps),
  })
