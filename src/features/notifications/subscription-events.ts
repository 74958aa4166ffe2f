import * as T from '#kernel/contract/schema.ts'
import { TextOrNull, Time } from '#kernel/contract/wire-types.ts'

/** The data of every event about a plan. */
export const SubscriptionChanged = T.Object(
  {
    subscription_id: T.String({ description: 'Id at the payment provider' }),
    plan: T.String({ description: 'Name of the plan' }),
    price_id: T.String({ description: 'Price of the plan at the payment provider' }),
    status: T.String({ description: 'State at the payment provider' }),
    current_period_end: T.String({ ...Time, description: 'When it renews or ends' }),
    cancel_at_period_end: T.Boolean({ description: 'True: it ends then' }),
    credits: T.Integer({ description: 'Credits that came; negative: taken back' }),
    reason: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'credits_changed: refunded, refund_failed, disputed or dispute_won',
    }),
    pay_url: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'payment_failed: where the renewal is paid',
    }),
  },
  { $id: 'SubscriptionChangedData', additionalProperties: true },
)
