import { randomBytes } from 'node:crypto'
import type { Billing } from './billing.ts'
import { apiVersion } from './catalogue.ts'
import { invalid, missing, StripeError } from './errors.ts'
import type { Events } from './events.ts'
import { addExpansions, type Shown } from './expand.ts'
import {
  checkParams,
  expandOf,
  type Fields,
  listOf,
  mapOf,
  objectOf,
  type Params,
  parseForm,
  requiredText,
  textOf,
} from './form.ts'
import { type AnyObject, type ObjectName, type PortalSession, type Session, shown } from './objects.ts'
import type { Store } from './store.ts'

/** The calls of the API that this world serves, with the parameters that each takes. */

export type ApiRequest = {
  method: string
  path: string
  query: string
  body: string
  key: string | undefined
  authorization: string | undefined
  version: string | undefined
  hostUrl: string
}
export type ApiReply = { status: number; body: string; headers: Record<string, string> }
type Context = { params: Params; id: string; hostUrl: string }
type Call = {
  method: 'GET' | 'POST' | 'DELETE'
  path: RegExp
  fields: Fields
  run: (context: Context) => object
}
type ApiDeps = {
  store: Store
  billing: Billing
  events: Events
  nowMs: () => number
  /** Decides whether a call fails with a 500, before or after it has acted. */
  nextError: () => 'before' | 'after' | undefined
}

const keyTtlMs = 86_400_000
const keyCharsMax = 255
const pageMax = 100
const pageDefault = 10
const leastSeconds = 30 * 60
const longestSeconds = 86_400
const portalSeconds = 300

const page: Fields = { limit: 'integer', starting_after: 'text', ending_before: 'text' }

const numberOf = (params: Params, name: string): number | undefined => {
  const text = textOf(params, name)
  return text === undefined ? undefined : Number(text)
}

function pageOf<Item extends AnyObject>(items: readonly Item[], params: Params, url: string) {
  const limit = numberOf(params, 'limit') ?? pageDefault
  if (limit < 1 || limit > pageMax)
    throw invalid('This value must be between 1 and 100.', {
      code: 'parameter_invalid_integer',
      param: 'limit',
    })
  const at = (name: string): number => {
    const id = textOf(params, name)
    if (id === undefined) return -1
    const index = items.findIndex((item) => item.id === id)
    if (index === -1) throw missing('object', id)
    return index
  }
  const before = at('ending_before')
  const end = before === -1 ? items.length : before
  const start = before === -1 ? at('starting_after') + 1 : Math.max(0, before - limit)
  const data = items.slice(start, Math.min(end, start + limit))
  const hasMore = before === -1 ? start + limit < items.length : start > 0
  return { object: 'list', url, has_more: hasMore, data }
}

function sessionCalls({ store, billing }: ApiDeps): Call[] {
  const create = ({ params, hostUrl }: Context): Session => {
    if (requiredText(params, 'mode') !== 'subscription')
      throw invalid('This account sells subscriptions only.', { param: 'mode' })
    const [line, ...more] = listOf(params, 'line_items')
    if (!line || more.length > 0)
      throw invalid('One line item is required.', { code: 'parameter_missing', param: 'line_items' })
    const priceId = requiredText(line, 'price')
    const price = store.find('price', priceId)
    if (!price)
      throw invalid(`No such price: '${priceId}'`, {
        code: 'resource_missing',
        param: 'line_items[0][price]',
      })
    const now = billing.seconds()
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
    const id = store.newId('checkout.session')
    return store.add({
      ...billing.base(),
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
        const session = store.get('checkout.session', id)
        if (session.status !== 'open')
          throw invalid(
            `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${session.status}\`.`,
          )
        billing.expire(session)
        return session
      },
    },
  ]
}

function subscriptionCalls({ store, billing }: ApiDeps): Call[] {
  const path = /^\/v1\/subscriptions\/(\w+)$/
  const alive = (id: string) => {
    const subscription = store.get('subscription', id)
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
        if (wanted !== undefined) billing.cancelAtEnd(subscription, wanted === 'true')
        return subscription
      },
    },
    {
      method: 'DELETE',
      path,
      fields: { invoice_now: 'boolean', prorate: 'boolean' },
      run: ({ id }) => {
        const subscription = alive(id)
        billing.endSubscription(subscription, billing.seconds())
        return subscription
      },
    },
  ]
}

function paymentCalls({ store, billing }: ApiDeps): Call[] {
  const refund = ({ params }: Context) => {
    const intentId = textOf(params, 'payment_intent')
    const chargeId =
      intentId === undefined
        ? requiredText(params, 'charge')
        : store.get('payment_intent', intentId).latest_charge
    const charge = store.get('charge', chargeId)
    if (!charge.paid) throw invalid(`Charge ${charge.id} was not paid.`)
    return billing.refund(charge, {
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
      run: refund,
    },
    {
      method: 'POST',
      path: /^\/v1\/disputes\/(\w+)$/,
      fields: { evidence: { fields: { uncategorized_text: 'text' } }, submit: 'boolean', metadata: 'map' },
      run: ({ id, params }) => {
        const dispute = store.get('dispute', id)
        const said = textOf(objectOf(params, 'evidence') ?? {}, 'uncategorized_text')
        if (said === 'winning_evidence') billing.closeDispute(dispute, 'won')
        if (said === 'losing_evidence') billing.closeDispute(dispute, 'lost')
        return dispute
      },
    },
    {
      method: 'POST',
      path: /^\/v1\/disputes\/(\w+)\/close$/,
      fields: {},
      run: ({ id }) => {
        const dispute = store.get('dispute', id)
        if (dispute.status !== 'needs_response') throw invalid('This dispute is already closed')
        billing.closeDispute(dispute, 'lost')
        return dispute
      },
    },
  ]
}

function portalCalls({ store, billing }: ApiDeps): Call[] {
  const create = ({ params, hostUrl }: Context): PortalSession => {
    const customer = store.get('customer', requiredText(params, 'customer'))
    const flow = objectOf(params, 'flow_data') ?? {}
    if (textOf(flow, 'type') !== 'subscription_update_confirm')
      throw invalid('This portal confirms changes of a subscription only.', { param: 'flow_data[type]' })
    const confirm = objectOf(flow, 'subscription_update_confirm') ?? {}
    const subscription = store.get('subscription', requiredText(confirm, 'subscription'))
    const [item] = listOf(confirm, 'items')
    const wrongItem = item === undefined || textOf(item, 'id') !== subscription.items.data[0].id
    if (subscription.customer !== customer.id || wrongItem || subscription.status !== 'active')
      throw invalid('The subscription cannot be changed by this customer.', { param: 'flow_data' })
    const price = store.get('price', requiredText(item, 'price'))
    const after = objectOf(flow, 'after_completion')
    const target = textOf(objectOf(after ?? {}, 'redirect') ?? {}, 'return_url')
    const id = store.newId('billing_portal.session')
    return store.add({
      ...billing.base(),
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
      expires_at: billing.seconds() + portalSeconds,
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

function endpointCalls({ store, billing }: ApiDeps): Call[] {
  return [
    {
      method: 'POST',
      path: /^\/v1\/webhook_endpoints$/,
      fields: { url: 'text', enabled_events: { list: 'text' }, description: 'text', api_version: 'text' },
      run: ({ params }) => {
        const endpoint = store.add({
          ...billing.base(),
          id: store.newId('webhook_endpoint'),
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
      method: 'DELETE',
      path: /^\/v1\/webhook_endpoints\/(\w+)$/,
      fields: {},
      run: ({ id }) => {
        store.get('webhook_endpoint', id)
        store.remove('webhook_endpoint', id)
        return { id, object: 'webhook_endpoint', deleted: true }
      },
    },
  ]
}

type Readable = { name: ObjectName; path: string; filters?: Fields; matches?: Matches }
type Matches = (object: AnyObject, params: Params) => boolean

const equal =
  (...names: string[]): Matches =>
  (object, params) =>
    names.every((name) => {
      const wanted = textOf(params, name)
      return wanted === undefined || (object as unknown as Shown)[name] === wanted
    })

/** Subscriptions that have ended are listed only where they are asked for. */
const listedSubscription: Matches = (object, params) => {
  const { status } = object as { status?: string }
  const wanted = textOf(params, 'status')
  const isWanted = wanted === undefined ? status !== 'canceled' : wanted === 'all' || wanted === status
  return isWanted && equal('customer')(object, params)
}
const invoiceOf: Matches = (object, params) => {
  const wanted = textOf(params, 'subscription')
  const { parent } = object as { parent?: { subscription_details: { subscription: string } } }
  const isWanted = wanted === undefined || parent?.subscription_details.subscription === wanted
  return isWanted && equal('customer', 'status')(object, params)
}

const readables: readonly Readable[] = [
  {
    name: 'checkout.session',
    path: 'checkout/sessions',
    filters: { customer: 'text', subscription: 'text', status: 'text' },
    matches: equal('customer', 'subscription', 'status'),
  },
  {
    name: 'price',
    path: 'prices',
    filters: { active: 'boolean', product: 'text' },
    matches: equal('product'),
  },
  { name: 'product', path: 'products', filters: { active: 'boolean' } },
  { name: 'customer', path: 'customers', filters: { email: 'text' }, matches: equal('email') },
  {
    name: 'subscription',
    path: 'subscriptions',
    filters: { customer: 'text', status: 'text' },
    matches: listedSubscription,
  },
  {
    name: 'invoice',
    path: 'invoices',
    filters: { customer: 'text', status: 'text', subscription: 'text' },
    matches: invoiceOf,
  },
  {
    name: 'payment_intent',
    path: 'payment_intents',
    filters: { customer: 'text' },
    matches: equal('customer'),
  },
  {
    name: 'charge',
    path: 'charges',
    filters: { customer: 'text', payment_intent: 'text' },
    matches: equal('customer', 'payment_intent'),
  },
  {
    name: 'refund',
    path: 'refunds',
    filters: { charge: 'text', payment_intent: 'text' },
    matches: equal('charge', 'payment_intent'),
  },
  {
    name: 'dispute',
    path: 'disputes',
    filters: { charge: 'text', payment_intent: 'text' },
    matches: equal('charge', 'payment_intent'),
  },
  { name: 'event', path: 'events', filters: { type: 'text' }, matches: equal('type') },
  { name: 'webhook_endpoint', path: 'webhook_endpoints' },
]

const readCalls = ({ store }: ApiDeps): Call[] =>
  readables.flatMap(({ name, path, filters = {}, matches = () => true }): Call[] => [
    {
      method: 'GET',
      path: new RegExp(`^/v1/${path}/(\\w+)$`),
      fields: {},
      run: ({ id }) => store.get(name, id),
    },
    {
      method: 'GET',
      path: new RegExp(`^/v1/${path}$`),
      fields: { ...filters, ...page },
      run: ({ params }) => {
        const found = store.all(name).filter((object) => matches(object, params))
        return pageOf(found, params, `/v1/${path}`)
      },
    },
  ])

/** A result that is an object of the store is shown without what only the world sees. */
function viewOf(store: Store, result: object, params: Params): Shown {
  const show = (object: object): Shown => (store.isStored(object) ? shown(object) : ({ ...object } as Shown))
  const expansions = expandOf(params)
  if ('data' in result && Array.isArray(result.data)) {
    const data = (result.data as object[]).map(show)
    const below = expansions.map((path) => {
      if (!path.startsWith('data.')) throw invalid(`This property cannot be expanded (${path}).`)
      return path.slice('data.'.length)
    })
    for (const each of data) addExpansions(store, each, below)
    return { ...result, data }
  }
  const view = show(result)
  addExpansions(store, view, expansions)
  return view
}

const assertKey = (authorization: string | undefined): void => {
  const key = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1]
  if (key === undefined)
    throw new StripeError(401, 'invalid_request_error', 'You did not provide an API key.')
  if (!/^(?:sk|rk)_test_\w{8,}$/.test(key))
    throw new StripeError(
      401,
      'invalid_request_error',
      `Invalid API Key provided: ${key.slice(0, 8)}****${key.slice(-4)}`,
    )
}

const requestId = (): string => `req_${randomBytes(7).toString('hex')}`

export function createApi(deps: ApiDeps) {
  const { store, billing, events, nowMs, nextError } = deps
  const calls = [
    ...sessionCalls(deps),
    ...subscriptionCalls(deps),
    ...paymentCalls(deps),
    ...portalCalls(deps),
    ...endpointCalls(deps),
    ...readCalls(deps),
  ]
  const running = new Set<string>()

  const find = (method: string, path: string): { call: Call; id: string } => {
    const call = calls.find((each) => each.method === method && each.path.test(path))
    if (!call)
      throw new StripeError(404, 'invalid_request_error', `Unrecognized request URL (${method}: ${path}).`)
    return { call, id: call.path.exec(path)?.[1] ?? '' }
  }

  const boom = () =>
    new StripeError(500, 'api_error', 'An unknown error occurred. Please contact support if it persists.')

  const execute = (request: ApiRequest, id: string): { status: number; body: string } => {
    const { method, path, query, body, hostUrl } = request
    const { call, id: objectId } = find(method, path)
    const params = parseForm(method === 'POST' ? body : query)
    checkParams(call.fields, params)
    events.setRequest(id, request.key ?? null)
    const error = method === 'POST' ? nextError() : undefined
    try {
      if (error === 'before') throw boom()
      const result = viewOf(store, call.run({ params, id: objectId, hostUrl }), params)
      if (method !== 'GET') store.save()
      if (error === 'after') throw boom()
      return { status: 200, body: JSON.stringify(result, null, 2) }
    } finally {
      events.setRequest(null, null)
    }
  }

  const errorReply = (error: unknown): { status: number; body: string } => {
    if (!(error instanceof StripeError)) throw error
    return { status: error.status, body: JSON.stringify(error.body(), null, 2) }
  }

  /** Replies of a key are those of its first request for a day, failures of the server included. */
  const replay = (key: string, fingerprint: string) => {
    const stored = store.replies.get(key)
    if (!stored || nowMs() - stored.atMs > keyTtlMs) return undefined
    if (stored.fingerprint === fingerprint) return stored
    throw new StripeError(
      400,
      'idempotency_error',
      `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`,
    )
  }

  const answer = (request: ApiRequest, id: string) => {
    const { method, path, body, key } = request
    assertKey(request.authorization)
    if (key === undefined || method !== 'POST') return { ...execute(request, id), extra: {} }
    if (key.length > keyCharsMax) throw invalid('The idempotency key is too long.')
    const fingerprint = `${method} ${path} ${body}`
    const stored = replay(key, fingerprint)
    if (stored)
      return {
        status: stored.status,
        body: stored.body,
        extra: { 'idempotent-replayed': 'true', 'original-request': stored.requestId },
      }
    if (running.has(key))
      throw new StripeError(409, 'idempotency_error', 'Another request with this key is in progress.', {
        code: 'idempotency_key_in_use',
      })
    running.add(key)
    try {
      let reply: { status: number; body: string }
      try {
        reply = execute(request, id)
      } catch (error) {
        reply = errorReply(error)
        // Parameters that are refused are not remembered.
        if (reply.status < 500) return { ...reply, extra: {} }
      }
      store.replies.set(key, { fingerprint, requestId: id, atMs: nowMs(), ...reply })
      store.save()
      return { ...reply, extra: { 'original-request': id } }
    } finally {
      running.delete(key)
    }
  }

  return (request: ApiRequest): ApiReply => {
    const id = requestId()
    billing.tick()
    let reply: { status: number; body: string; extra: Record<string, string> }
    try {
      reply = answer(request, id)
    } catch (error) {
      reply = { ...errorReply(error), extra: {} }
    }
    return {
      status: reply.status,
      body: reply.body,
      headers: {
        'content-type': 'application/json',
        'request-id': id,
        'stripe-version': request.version ?? apiVersion,
        ...(request.key !== undefined && { 'idempotency-key': request.key }),
        ...reply.extra,
      },
    }
  }
}
