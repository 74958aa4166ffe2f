import { mutationsOf } from './mutation.ts'

const journeys = ['test/journeys/subscriptions.test.ts']
const signatures = ['test/upstreams/stripe-signature.test.ts']
const periods = ['test/journeys/subscription-periods.test.ts']

/** Who pays for a plan, what each paid invoice brings, and which events are believed. */
export const subscriptionMutations = [
  ...mutationsOf('src/features/subscriptions/plan-credits.ts', periods, [
    [
      'const granted = wanted > unspent ? wanted - unspent : 0n',
      'const granted = wanted',
      'a change of plan brings its credits beside those of the old one',
    ],
    [
      'unspent += available + held',
      'unspent += available',
      'credits that running answers hold while a plan changes come back beside the new ones',
    ],
    [
      'if (isRepeated) return 0n',
      '',
      'pages of a change that were kept open bring the credits of the plan again and again, for nothing',
    ],
    [
      'billed < whole ? (credits * billed) / whole : credits',
      'credits',
      'a change on the last day of a period brings the credits of a whole one',
    ],
    [
      'else if (!isChange) await expireBy(tx, each, earliest(each.period_end, now))',
      '',
      'unspent credits roll over into the next period',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/plan-credits.ts', journeys, [
    [
      '((granted ?? 0n) * refunded_cents) / paid_cents',
      '(granted ?? 0n)',
      'a refund of a part takes back all credits',
    ],
    [
      '} else if (missing < 0n) {',
      '} else if (missing < -1_000_000_000n) {',
      'a dispute that was won returns nothing',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/apply-reading.ts', journeys, [
    [
      "before?.role ?? (isFirst ? 'main' : 'duplicate')",
      "before?.role ?? 'main'",
      'a second plan that is paid at once is kept',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/apply-reading.ts', periods, [
    [
      "if (invoice.status !== 'paid' || invoice.granted !== null || !plan) continue",
      'if (invoice.granted !== null || !plan) continue',
      'a renewal that is not paid brings credits',
    ],
    [
      'if (row.ended_at !== null) await expireEnded(deps, tx, invoice, row.ended_at)',
      '',
      'credits outlive their plan',
    ],
    [
      'row.current_period_end <= later(now, daySeconds * 1_000) || invoices.some(isUnpaid)',
      'false',
      'a renewal whose event is lost is found a day later',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/sync.ts', journeys, [
    ['if (payment !== null) await stripe.refund(payment)', '', 'a plan that is paid twice is not refunded'],
  ]),
  ...mutationsOf('src/features/subscriptions/checkout.ts', journeys, [
    [
      'row.page !== data.failedPage',
      'row.page > 0',
      'a page whose key answers with a failure is asked for again under it',
    ],
    [
      'result: resultOf(data, row, { isReused: false }),',
      'result: { ...resultOf(data, row, { isReused: false }), checkout_url: made.url },',
      'a token that may only read gets the address of a page from its task',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/cancel.ts', periods, [
    [
      "if (undo && principal !== 'app') throw byPerson('let a plan renew again')",
      '',
      'a program lets a plan renew that its person has ended, and the stored card pays',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/checkout-admission.ts', periods, [
    ['if (known && known.price_id !== plan.priceId) throw otherPrice()', '', 'one intent buys two plans'],
    [
      "if (principal !== 'app') throw byPerson('ask for the page of a change')",
      '',
      'a program gets the page of a change, and charges the stored card of the person',
    ],
    [
      'if (old === undefined || plan.cents <= old.cents)',
      'if (old === undefined)',
      'a smaller plan is begun in mid-period, and unused time is paid back after its credits were spent',
    ],
    [
      'if (old === undefined || plan.cents <= old.cents)',
      'if (old === undefined || plan.cents < old.cents)',
      'a payer changes between plans of one price for nothing, and gets the credits each time',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/checkout-admission.ts', journeys, [
    [
      ".status === 'suspended')",
      ".status === 'none')",
      'a payer who disputes a plan buys a larger one with the same card',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/cancel.ts', journeys, [
    [
      `  const subscription = await stripe.setCancelAtPeriodEnd(data.subscription, { isWanted: !data.undo })
  if (!subscription) throw conflict('The plan has ended already', 'not_subscribed')
  // A reading that began before the change, and ends after it, must not hide it; another one follows below.
  const order = await beginReading(db, data.subscription)
`,
      `  const order = await beginReading(db, data.subscription)
  const subscription = await stripe.setCancelAtPeriodEnd(data.subscription, { isWanted: !data.undo })
  if (!subscription) throw conflict('The plan has ended already', 'not_subscribed')
`,
      'a reading that saw the plan before its cancellation hides that',
    ],
  ]),
  ...mutationsOf('src/features/subscriptions/receive-event.ts', journeys, [
    ['if (event.isLive !== isLive) {', 'if (false) {', 'events of the other mode are read'],
  ]),
  ...mutationsOf('src/edges/http/provider-events-route.ts', journeys, [
    [
      'if (!isReleased && !hasArrived) onUnfinished(key)',
      '',
      'an address holds all places for bodies that it never sends, as often as it likes',
    ],
  ]),
  ...mutationsOf('src/upstreams/stripe/signature.ts', signatures, [
    [
      'Math.abs(now.getTime() / 1_000 - Number(time))',
      '(now.getTime() / 1_000 - Number(time))',
      'an event of the future is believed',
    ],
    ["name?.trim() === 'v1'", "name?.trim() !== 't'", 'a signature of another scheme is believed'],
  ]),
]
