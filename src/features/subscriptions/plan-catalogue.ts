import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { fromUnits } from '#kernel/money/money.ts'
import type { Interval, Price, Stripe } from '#upstreams/stripe/stripe.ts'

/** The plans that are sold: the operator names price and credits, and the provider the amount. */

export type Plan = { name: string; priceId: string; credits: bigint }
export type PricedPlan = Plan & {
  cents: bigint
  interval: Interval
  /** False for a price that the operator sells no more, or not in USD; subscriptions to it may still exist. */
  isSold: boolean
}
export type PlanCatalogue = {
  /** Returns the plan of a price, also of one that is sold no more; undefined for a price of another shop. */
  find(priceId: string): Plan | undefined
  /** Returns the plans that are sold now, without those whose price cannot be read; throws if none can be. */
  sold(): Promise<PricedPlan[]>
  /** Returns what a price costs, sold or not; undefined if it is of another shop, or was not in USD. */
  priced(priceId: string): Promise<PricedPlan | undefined>
  /** Throws a 422 for a price that is not sold. */
  requireSold(priceId: string): Promise<PricedPlan>
}

const freshMs = 600_000
const centPlaces = 2
const currency = 'usd'

export const usdOf = (cents: bigint): string => fromUnits(cents, centPlaces)

export function createPlanCatalogue(plans: readonly Plan[], stripe: Pick<Stripe, 'price'>): PlanCatalogue {
  const prices = createTtlCache<Price>({
    ttlMs: freshMs,
    entriesMax: Math.max(1, plans.length),
    nowMs: monotonicMs,
  })
  const read = ({ priceId }: Plan): Promise<Price> =>
    prices
      .get(priceId, () => stripe.price(priceId))
      .catch((error: unknown) => {
        // An amount that was read before is still right: the provider never changes the amount of a price.
        const last = prices.last(priceId)
        if (last && error instanceof Fault) return last
        throw error
      })
  const find = (priceId: string) => plans.find((each) => each.priceId === priceId)
  const priced = async (priceId: string) => {
    const plan = find(priceId)
    const price = plan && (await read(plan))
    if (!plan || price?.currency !== currency) return undefined
    return { ...plan, cents: price.cents, interval: price.interval, isSold: price.isActive }
  }
  const sold = async () => {
    const all = await Promise.allSettled(plans.map(({ priceId }) => priced(priceId)))
    const [failed] = all.flatMap((each) => (each.status === 'rejected' ? [each] : []))
    // The operator may have archived or mistyped one price; the others are sold all the same.
    if (failed && all.every(({ status }) => status === 'rejected')) throw failed.reason
    return all.flatMap((each) => (each.status === 'fulfilled' && each.value?.isSold ? [each.value] : []))
  }
  return {
    find,
    priced,
    sold,
    async requireSold(priceId) {
      const plan = await priced(priceId)
      if (plan?.isSold) return plan
      const possible = (await sold()).map((each) => each.priceId)
      throw invalid(
        'price_id',
        'unknown_price',
        `Input should be ${possible.join(', ')}: \`subscriptions_plans\` shows what each is`,
        { possible },
      )
    },
  }
}
