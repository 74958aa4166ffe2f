import { invalid } from './errors.ts'
import { type AnyObject, type Invoice, type ObjectName, prefixes, shown } from './objects.ts'
import type { Store } from './store.ts'

/** `expand[]`: references are replaced by what they name, and parts are added that are shown only on demand. */

export type Shown = Record<string, unknown>

const levelsMax = 4

const listOf = (url: string, data: Shown[]): Shown => ({ object: 'list', url, has_more: false, data })

/** The parts that are absent until they are asked for. */
const included: Readonly<Record<string, (store: Store, view: Shown) => Shown | undefined>> = {
  'invoice.payments': (store, view) => {
    const invoice = store.get('invoice', String(view.id))
    return listOf(`/v1/invoice_payments?invoice=${invoice.id}`, paymentsOf(store, invoice))
  },
  'checkout.session.line_items': (store, view) => {
    const session = store.get('checkout.session', String(view.id))
    const price = store.get('price', session.price)
    const item = {
      id: `li_${session.id.slice(-24)}`,
      object: 'item',
      amount_total: session.amount_total,
      amount_subtotal: session.amount_subtotal,
      currency: session.currency,
      quantity: 1,
      price: shown(price),
    }
    return listOf(`/v1/checkout/sessions/${session.id}/line_items`, [item])
  },
  'charge.refunds': (store, view) =>
    listOf(
      `/v1/charges/${String(view.id)}/refunds`,
      store
        .all('refund')
        .filter(({ charge }) => charge === view.id)
        .map(shown),
    ),
}

function paymentsOf(store: Store, invoice: Invoice): Shown[] {
  const { payment_intent: intent } = invoice
  if (intent === null) return []
  const isPaid = store.get('payment_intent', intent).status === 'succeeded'
  return [
    {
      id: `inpay_${intent.slice(3)}`,
      object: 'invoice_payment',
      created: invoice.created,
      livemode: false,
      amount_paid: isPaid ? invoice.total : null,
      amount_requested: invoice.total,
      currency: invoice.currency,
      invoice: invoice.id,
      is_default: true,
      payment: { type: 'payment_intent', payment_intent: intent },
      status: isPaid ? 'paid' : 'open',
      status_transitions: { canceled_at: null, paid_at: invoice.status_transitions.paid_at },
    },
  ]
}

const nameOf = (id: string): ObjectName | undefined =>
  (Object.entries(prefixes) as [ObjectName, string][]).find(([, prefix]) => id.startsWith(`${prefix}_`))?.[0]

function referenced(store: Store, id: string): AnyObject | undefined {
  const name = nameOf(id)
  return name && store.find(name, id)
}

function expand(store: Store, view: Shown, parts: readonly string[], path: string): void {
  const [part, ...rest] = parts
  if (part === undefined) return
  const include = included[`${String(view.object)}.${part}`]
  if (view[part] === undefined && include) view[part] = include(store, view)
  const value = view[part]
  if (value === undefined)
    throw invalid(`This property cannot be expanded (${path}).`, { code: 'property_cannot_be_expanded' })
  if (value === null) return
  if (typeof value === 'string') {
    const object = referenced(store, value)
    if (!object) throw invalid(`This property cannot be expanded (${path}).`)
    view[part] = shown(object)
  }
  for (const each of [view[part]].flat()) expand(store, each as Shown, rest, path)
}

export function addExpansions(store: Store, view: Shown, paths: readonly string[]): void {
  for (const path of paths) {
    const parts = path.split('.')
    if (parts.length > levelsMax) throw invalid(`Expansions go ${levelsMax} levels deep (${path}).`)
    expand(store, view, parts, path)
  }
}
