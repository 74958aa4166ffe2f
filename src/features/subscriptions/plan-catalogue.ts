import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { fromUnits } from '#kernel/money/money.ts'
import type { Interval, Stripe } from '#upstreams/stripe/stripe.ts'

/** The plans that are sold: the operator names price and credits, and the provider the amount. */

export type Plan = { name: string; priceId: string; credits: bigint }
export type PricedPlan = Plan & { cents: bigint; interval: Interval }
export type PlanCatalogue = {
  /** Returns the plan of a price, also of one that is sold no more; undefined for a price of another shop. */
  find(priceId: string): Plan | undefined
  all(): Promise<PricedPlan[]>
  /** Throws a 422 for a price that is not sold. */
  requireSold(priceId: string): Promise<PricedPlan>
}

const freshMs = 600_000
const centPlaces = 2

export const usdOf = (cents: bigint): string => fromUnits(cents, centPlaces)

export function createPlanCatalogue(plans: readonly Plan[], stripe: Pick<Stripe, 'price'>): PlanCatalogue {
  const prices = createTtlCache<PricedPlan>({
    ttlMs: freshMs,
    entriesMax: Math.max(1, plans.length),
    nowMs: monotonicMs,
  })
  const priced = (plan: Plan): Promise<PricedPlan> =>
    prices
      .get(plan.priceId, async () => {
        const { cents, currency, interval, isActive } = await stripe.price(plan.priceId)
        if (currency !== 'usd' || !isActive)
          throw new Fault('unavailable', `The plan ${plan.name} is not for sale in USD now`)
        return { ...plan, cents, interval }
      })
      .catch((error: unknown) => {
        // An amount that was read before is still right: the provider never changes the amount of a price.
        const last = prices.last(plan.priceId)
        if (last && error instanceof Fault) return last
        throw error
      })
  const find = (priceId: string) => plans.find((each) => each.priceId === priceId)
  return {
    find,
    all: () => Promise.all(plans.map(priced)),
    async requireSold(priceId) {
      const plan = find(priceId)
      if (plan) return priced(plan)
      const possible = plans.map((each) => each.priceId)
      throw invalid(
        'price_id',
        'unknown_price',
        `Input should be ${possible.join(', ')}: \`subscriptions_plans\` shows what each is`,
        { possible },
      )
    },
  }
}
