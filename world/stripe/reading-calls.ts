import { type Call, numberOf } from './call.ts'
import { invalid, missing } from './errors.ts'
import type { Shown } from './expand.ts'
import { type Fields, type Params, textOf } from './form.ts'
import type { AnyObject, ObjectName } from './objects.ts'
import type { Store } from './store.ts'

/** The calls that read: an object by its id, or a page of those that match. */

const pageMax = 100
const pageDefault = 10
const page: Fields = { limit: 'integer', starting_after: 'text', ending_before: 'text' }

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

export const readingCalls = (store: Store): Call[] =>
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
