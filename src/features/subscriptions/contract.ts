import { setColumns } from '#kernel/contract/columns.ts'
import { group, read, task } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Dec, DecOrNull, Nullable, OneOf, TextOrNull, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'

/** Each call asks the payment provider, whose own limit is shared by all users, so it costs more than a change of a row. */
const callPoints = 20

export const planStatuses = ['none', 'active', 'past_due', 'suspended', 'canceled'] as const
const Interval = OneOf(['month', 'year'], { description: 'How often it is paid' })
const PriceId = T.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'Price of the plan at the payment provider, as `subscriptions_plans` lists it',
  examples: ['price_local_plus_month'],
})
const planFields = {
  plan: T.String({ description: 'Name of the plan' }),
  price_usd: T.String({ ...Dec, description: 'USD for each interval' }),
  interval: Interval,
}

const CheckoutRequest = T.Object(
  {
    price_id: PriceId,
    client_intent_id: T.String({
      minLength: 1,
      maxLength: 36,
      pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$',
      description:
        'UUID4 that you make for this purchase: the same one returns the same page for 30 minutes, or for 3.5 minutes where it changes your plan',
      examples: ['7f0c1d9e-3b52-4c8a-9f41-2f6f5a1d8e77'],
    }),
  },
  {
    $id: 'CheckoutRequest',
    examples: [
      { price_id: 'price_local_plus_month', client_intent_id: '7f0c1d9e-3b52-4c8a-9f41-2f6f5a1d8e77' },
    ],
  },
)

const CheckoutResponse = T.Object(
  {
    checkout_url: T.String({
      format: 'uri',
      description:
        'Page of the payment provider for the person. A change of plan asks for no card there: keep its address secret',
    }),
    checkout_id: T.String({ description: 'Id of the checkout' }),
    ...planFields,
    status: OneOf(['open'] as const),
    expires_at: T.String({ ...Time, description: 'When the page ends' }),
    reused: T.Boolean({ description: 'True where an earlier call under this intent made the page' }),
  },
  { $id: 'CheckoutResponse' },
)

const Plan = T.Object(
  {
    ...planFields,
    price_id: T.String({ description: 'What `subscriptions_checkout` takes' }),
    credits: T.Integer({ description: 'Credits of each paid interval' }),
    changes: T.String({ description: 'What the plan changes, in one sentence' }),
  },
  { $id: 'Plan' },
)

const Payment = T.Object(
  {
    invoice_id: T.String({ description: 'Id at the payment provider' }),
    status: T.String({ description: 'State of the invoice there, such as paid or open' }),
    amount_usd: T.String({ ...Dec, description: 'What was paid, or is to be paid, in USD' }),
    refunded_usd: T.String({ ...Dec, description: 'What was paid back, in USD' }),
    dispute: Nullable(
      OneOf(['open', 'lost', 'won'], { description: 'Whether the payer disputes it; null: never' }),
    ),
    credits: T.Integer({ description: 'Credits that it brought' }),
    credits_taken_back: T.Integer({ description: 'How many of them a refund or dispute took back' }),
    credits_expire_at: TimeOrNull,
    paid_at: TimeOrNull,
    created_at: Time,
  },
  { $id: 'PlanPayment' },
)
setColumns(Payment, ['paid_at', 'amount_usd', 'status', 'credits', 'refunded_usd'])

export const Subscription = T.Object(
  {
    plan: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'Plan of the subscription; null where there never was one',
    }),
    price_id: Nullable(T.String(), { description: 'Price of the plan; null where there never was one' }),
    price_usd: DecOrNull,
    interval: Nullable(Interval),
    status: OneOf(planStatuses, {
      description:
        'past_due: a renewal was not paid; suspended: its last payment is disputed; canceled: it has ended',
    }),
    current_period_end: T.Unsafe<string | null>({
      ...TimeOrNull,
      description: 'When it renews, or ends',
    }),
    cancel_at_period_end: T.Boolean({ description: 'True: it ends then, and is paid no more' }),
    pay_url: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'Page on which an unpaid renewal is paid; null without one',
    }),
    payments: T.Array(Payment, { description: 'Newest first, 24 at most' }),
  },
  { $id: 'SubscriptionResponse' },
)

const about = 'Plans that a person pays for by card, and the credits that they bring.'

/** The gateway has these operations only where a payment provider is configured. */
export const contract = group('subscriptions', about, {
  checkout: task('POST /v1/subscriptions/checkout', {
    summary: 'A page on which a person pays for a plan',
    description: `Use it to subscribe to a plan, or to change to a larger one, which takes the token of a person who signed in. Nothing is paid by this call: give \`checkout_url\` to a person, who pays there by card. Credits come with each paid invoice, once. Other open pages of a new plan end. It counts as ${callPoints} calls. Next: \`subscriptions_show\` says when the plan is active, \`credits_available\` shows its credits.`,
    access: 'manage',
    callers: 'people',
    rate: 'money',
    points: () => callPoints,
    waitSeconds: 40,
    isAnswered: true,
    repeatable: true,
    body: CheckoutRequest,
    output: CheckoutResponse,
    faults: ['step_up_required', 'idempotency_conflict', 'conflict', 'upstream_rejected', 'unavailable'],
  }),
  plans: read('GET /v1/subscriptions/plans', {
    isAddition: true,
    summary: 'The plans that are sold, with price and credits',
    description:
      'Use it to choose a plan. It needs no credential and changes nothing. Next: `subscriptions_checkout` takes a `price_id`.',
    access: 'public',
    faults: ['unavailable'],
    output: T.Object({ plans: T.Array(Plan, { description: 'Those on sale' }) }, { $id: 'PlansResponse' }),
  }),
  show: read('GET /v1/subscriptions', {
    isAddition: true,
    summary: 'The plan of the user, until when, and its payments',
    description:
      'Use it after a payment, and to see why credits of a plan came or went. Next: `subscriptions_cancel` ends the plan, `subscriptions_checkout` begins or enlarges it.',
    access: 'read',
    output: Subscription,
  }),
  cancel: task('POST /v1/subscriptions/cancel', {
    isAddition: true,
    summary: 'End the plan when its paid period ends',
    description: `Use it to leave: the plan and its credits stay until the end of the paid period, and nothing is paid after it. \`undo\` takes this back while the period lasts, and needs a person who has signed in, since the stored card then pays again. It counts as ${callPoints} calls. Next: \`subscriptions_show\`.`,
    access: 'manage',
    rate: 'exit',
    points: () => callPoints,
    priority: 0,
    waitSeconds: 40,
    isAnswered: true,
    repeatable: true,
    body: T.Object(
      {
        undo: T.Optional(T.Boolean({ default: false, description: 'True: let the plan renew again' })),
      },
      { $id: 'CancelPlanRequest', examples: [{}] },
    ),
    bodyOptional: true,
    output: Subscription,
    faults: ['conflict', 'upstream_rejected', 'unavailable'],
  }),
})
