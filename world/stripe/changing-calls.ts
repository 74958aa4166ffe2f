import { randomBytes } from 'node:crypto'
import { type Call, type Context, numberOf } from './call.ts'
import { invalid } from './errors.ts'
import { listOf, mapOf, objectOf, requiredText, textOf } from './form.ts'
import { type PortalSession, type Session, shown } from './objects.ts'
import { closeDispute, refund } from './payments.ts'
import { cancelAtEnd, endSchedule, endSubscription, expire } from './renewals.ts'
import type { Shop } from './shop.ts'

/** The calls that change something. */

const leastSeconds = 30 * 60
const longestSeconds = 86_400
const portalSeconds = 300
const endpointsMax = 16

function sessionCalls(shop: Shop): Call[] {
  const create = ({ params, hostUrl }: Context): Session => {
    if (requiredText(params, 'mode') !== 'subscription')
      throw invalid('This account sells subscriptions only.', { param: 'mode' })
    const [line, ...more] = listOf(params, 'line_items')
    if (!line || more.length > 0)
      throw invalid('One line item is required.', { code: 'parameter_missing', param: 'line_items' })
    const priceId = requiredText(line, 'price')
    const price = shop.store.find('price', priceId)
    if (!price)
      throw invalid(`No such price: '${priceId}'`, {
        code: 'resource_missing',
        param: 'line_items[0][price]',
      })
    const now = shop.seconds()
    const expires = numberOf(params, 'expires_at') ?? now + longestSeconds
    if (expires < now + leastSeconds || expires > now + longestSeconds)
      throw invalid('The `expires_at` timestamp must be at least 30 minutes and at most 24 hours ahead.', {
        param: 'expires_at',
      })
    const success = requiredText(params, 'success_url')
    for (const [name, url] of [
      ['success_url', success],
      ['cancel_url', textOf(params, 'cancel_url')],
    ] as const)
      if (url !== undefined && !URL.canParse(url))
        throw invalid('Not a valid URL', { code: 'url_invalid', param: name })
    const id = shop.store.newId('checkout.session')
    return shop.store.add({
      ...shop.base(),
      id,
      object: 'checkout.session',
      mode: 'subscription',
      status: 'open',
      payment_status: 'unpaid',
      url: `${hostUrl}/c/pay/${id}`,
      success_url: success,
      cancel_url: textOf(params, 'cancel_url') ?? null,
      client_reference_id: textOf(params, 'client_reference_id') ?? null,
      customer: null,
      customer_email: textOf(params, 'customer_email') ?? null,
      subscription: null,
      invoice: null,
      currency: price.currency,
      amount_total: price.unit_amount,
      amount_subtotal: price.unit_amount,
      expires_at: expires,
      metadata: mapOf(params, 'metadata'),
      price: price.id,
      subscription_metadata: mapOf(objectOf(params, 'subscription_data') ?? {}, 'metadata'),
    })
  }
  return [
    {
      method: 'POST',
      path: /^\/v1\/checkout\/sessions$/,
      fields: {
        mode: 'text',
        line_items: { list: { fields: { price: 'text', quantity: 'integer' } } },
        success_url: 'text',
        cancel_url: 'text',
        client_reference_id: 'text',
        customer_email: 'text',
        expires_at: 'integer',
        adaptive_pricing: { fields: { enabled: 'boolean' } },
        metadata: 'map',
        subscription_data: { fields: { metadata: 'map' } },
      },
      run: create,
    },
    {
      method: 'POST',
      path: /^\/v1\/checkout\/sessions\/(\w+)\/expire$/,
      fields: {},
      run: ({ id }) => {
        const session = shop.store.get('checkout.session', id)
        if (session.status !== 'open')
          throw invalid(
            `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${session.status}\`.`,
          )
        expire(shop, session)
        return session
      },
    },
  ]
}

function subscriptionCalls(shop: Shop): Call[] {
  const path = /^\/v1\/subscriptions\/(\w+)$/
  const alive = (id: string) => {
    const subscription = shop.store.get('subscription', id)
    if (subscription.status === 'canceled')
      throw invalid(`No such subscription: '${id}'`, { code: 'resource_missing', param: 'id' })
    return subscription
  }
  return [
    {
      method: 'POST',
      path,
      fields: { cancel_at_period_end: 'boolean', metadata: 'map' },
      run: ({ id, params }) => {
        const subscription = alive(id)
        Object.assign(subscription.metadata, mapOf(params, 'metadata'))
        const wanted = textOf(params, 'cancel_at_period_end')
        if (wanted !== undefined && subscription.schedule)
          throw invalid(
            `The subscription is managed by the subscription schedule \`${subscription.schedule}\`, and updating any cancelation behavior directly is not allowed. Please update the schedule instead.`,
          )
        if (wanted !== undefined) cancelAtEnd(shop, subscription, { isWanted: wanted === 'true' })
        return subscription
      },
    },
    {
      method: 'POST',
      path: /^\/v1\/subscription_schedules\/(\w+)\/release$/,
      fields: {},
      run: ({ id }) => {
        const schedule = shop.store.get('subscription_schedule', id)
        if (schedule.subscription === null)
          throw invalid(
            `You cannot release a subscription schedule that is currently in the \`${schedule.status}\` status. You can only release a subscription schedule that is in the \`not_started\` or \`active\` status.`,
          )
        const subscription = alive(schedule.subscription)
        endSchedule(subscription, schedule, 'released')
        shop.emit('customer.subscription.updated', subscription, shop.originOf(subscription.customer))
        shop.store.save()
        return schedule
      },
    },
    {
      method: 'DELETE',
      path,
      fields: { invoice_now: 'boolean', prorate: 'boolean' },
      run: ({ id }) => {
        const subscription = alive(id)
        endSubscription(shop, subscription, shop.seconds())
        return subscription
      },
    },
  ]
}

function paymentCalls(shop: Shop): Call[] {
  const makeRefund = ({ params }: Context) => {
    const intentId = textOf(params, 'payment_intent')
    const chargeId =
      intentId === undefined
        ? requiredText(params, 'charge')
        : shop.store.get('payment_intent', intentId).latest_charge
    const charge = shop.store.get('charge', chargeId)
    if (!charge.paid) throw invalid(`Charge ${charge.id} was not paid.`)
    return refund(shop, charge, {
      amount: numberOf(params, 'amount') ?? charge.amount_captured - charge.amount_refunded,
      reason: textOf(params, 'reason') ?? null,
      metadata: mapOf(params, 'metadata'),
    })
  }
  return [
    {
      method: 'POST',
      path: /^\/v1\/refunds$/,
      fields: { payment_intent: 'text', charge: 'text', amount: 'integer', reason: 'text', metadata: 'map' },
      run: makeRefund,
    },
    {
      method: 'POST',
      path: /^\/v1\/disputes\/(\w+)$/,
      fields: { evidence: { fields: { uncategorized_text: 'text' } }, submit: 'boolean', metadata: 'map' },
      run: ({ id, params }) => {
        const dispute = shop.store.get('dispute', id)
        const said = textOf(objectOf(params, 'evidence') ?? {}, 'uncategorized_text')
        if (said === 'winning_evidence') closeDispute(shop, dispute, 'won')
        if (said === 'losing_evidence') closeDispute(shop, dispute, 'lost')
        return dispute
      },
    },
    {
      method: 'POST',
      path: /^\/v1\/disputes\/(\w+)\/close$/,
      fields: {},
      run: ({ id }) => {
        const dispute = shop.store.get('dispute', id)
        if (dispute.status !== 'needs_response') throw invalid('This dispute is already closed')
        closeDispute(shop, dispute, 'lost')
        return dispute
      },
    },
  ]
}

function portalCalls(shop: Shop): Call[] {
  const create = ({ params, hostUrl }: Context): PortalSession => {
    const customer = shop.store.get('customer', requiredText(params, 'customer'))
    const flow = objectOf(params, 'flow_data') ?? {}
    if (textOf(flow, 'type') !== 'subscription_update_confirm')
      throw invalid('This portal confirms changes of a subscription only.', { param: 'flow_data[type]' })
    const confirm = objectOf(flow, 'subscription_update_confirm') ?? {}
    const subscription = shop.store.get('subscription', requiredText(confirm, 'subscription'))
    const [item] = listOf(confirm, 'items')
    const wrongItem = item === undefined || textOf(item, 'id') !== subscription.items.data[0].id
    if (subscription.customer !== customer.id || wrongItem || subscription.status !== 'active')
      throw invalid('The subscription cannot be changed by this customer.', { param: 'flow_data' })
    const price = shop.store.get('price', requiredText(item, 'price'))
    const after = objectOf(flow, 'after_completion')
    const target = textOf(objectOf(after ?? {}, 'redirect') ?? {}, 'return_url')
    const id = shop.store.newId('billing_portal.session')
    return shop.store.add({
      ...shop.base(),
      id,
      object: 'billing_portal.session',
      customer: customer.id,
      return_url: textOf(params, 'return_url') ?? null,
      url: `${hostUrl}/p/session/${id}`,
      configuration: textOf(params, 'configuration') ?? 'bpc_local',
      flow: {
        type: 'subscription_update_confirm',
        after_completion: {
          type: target === undefined ? 'portal_homepage' : 'redirect',
          redirect: target === undefined ? null : { return_url: target },
        },
        subscription_update_confirm: {
          subscription: subscription.id,
          items: [{ id: subscription.items.data[0].id, price: price.id, quantity: 1 }],
          discounts: null,
        },
      },
      used: false,
      expires_at: shop.seconds() + portalSeconds,
    })
  }
  return [
    {
      method: 'POST',
      path: /^\/v1\/billing_portal\/sessions$/,
      fields: {
        customer: 'text',
        return_url: 'text',
        configuration: 'text',
        flow_data: {
          fields: {
            type: 'text',
            after_completion: {
              fields: { type: 'text', redirect: { fields: { return_url: 'text' } } },
            },
            subscription_update_confirm: {
              fields: {
                subscription: 'text',
                items: { list: { fields: { id: 'text', price: 'text', quantity: 'integer' } } },
              },
            },
          },
        },
      },
      run: create,
    },
  ]
}

function endpointCalls(shop: Shop): Call[] {
  return [
    {
      method: 'POST',
      path: /^\/v1\/webhook_endpoints$/,
      fields: { url: 'text', enabled_events: { list: 'text' }, description: 'text', api_version: 'text' },
      run: ({ params }) => {
        if (shop.store.all('webhook_endpoint').length >= endpointsMax)
          throw invalid(`You have reached the maximum of ${endpointsMax} webhook endpoints.`)
        const endpoint = shop.store.add({
          ...shop.base(),
          id: shop.store.newId('webhook_endpoint'),
          object: 'webhook_endpoint',
          url: requiredText(params, 'url'),
          enabled_events: (params.enabled_events ?? []) as string[],
          status: 'enabled',
          secret: `whsec_${randomBytes(24).toString('base64url')}`,
        })
        // The secret is shown once, by the call that makes it.
        return { ...shown(endpoint), secret: endpoint.secret }
      },
    },
    {
      method: 'POST',
      path: /^\/v1\/webhook_endpoints\/(\w+)$/,
      fields: { url: 'text', enabled_events: { list: 'text' } },
      run: ({ id, params }) => {
        const endpoint = shop.store.get('webhook_endpoint', id)
        endpoint.url = textOf(params, 'url') ?? endpoint.url
        endpoint.enabled_events = (params.enabled_events as string[] | undefined) ?? endpoint.enabled_events
        return endpoint
      },
    },
    {
      method: 'DELETE',
      path: /^\/v1\/webhook_endpoints\/(\w+)$/,
      fields: {},
      run: ({ id }) => {
        shop.store.get('webhook_endpoint', id)
        shop.store.remove('webhook_endpoint', id)
        return { id, object: 'webhook_endpoint', deleted: true }
      },
    },
  ]
}

export const changingCalls = (shop: Shop): Call[] => [
  ...sessionCalls(shop),
  ...subscriptionCalls(shop),
  ...paymentCalls(shop),
  ...portalCalls(shop),
  ...endpointCalls(shop),
]
