import type { ServerResponse } from 'node:http'
import { confirmUpdate, payInvoice, paySession, prorationOf } from './billing.ts'
import { declineMessages, testCards } from './cards.ts'
import type { Invoice, PortalSession, Price, Session } from './objects.ts'
import { escapeHtml, money, type Page, sendPage } from './page.ts'
import type { PaymentResult } from './payments.ts'
import { tick } from './renewals.ts'
import type { Shop } from './shop.ts'

/** The pages on which a payer pays: checkout, confirmation of a change, and an invoice that was not paid. */

export type PageRequest = { method: string; path: string; form: URLSearchParams; answer: ServerResponse }
type PageDeps = { shop: Shop; nowMs: () => number }
type Form = { form: URLSearchParams; answer: ServerResponse }

const declineStatus = 402
const goneStatus = 410

const field = (label: string, name: string, attributes: string): string =>
  `<label>${label}<input name="${name}" ${attributes} required></label>`

function cardForm({
  button,
  email,
  wrong,
}: {
  button: string
  /** What the payer has filled in; undefined where no address is asked for. */
  email: string | undefined
  wrong?: string | undefined
}): string {
  const rows = testCards.map(({ number, label }) => `<tr><td>${number}</td><td>${label}</td></tr>`)
  return `<form method="post">
${wrong === undefined ? '' : `<p class="wrong" role="alert">${escapeHtml(wrong)}</p>`}
${email === undefined ? '' : field('Email', 'email', `type="email" autocomplete="email" maxlength="254" value="${escapeHtml(email)}"`)}
${field('Card number', 'card', 'inputmode="numeric" autocomplete="cc-number" maxlength="23"')}
<div class="pair">${field('Expiry', 'expiry', 'placeholder="MM / YY" autocomplete="cc-exp" maxlength="7"')}${field('Security code', 'cvc', 'inputmode="numeric" autocomplete="cc-csc" maxlength="4"')}</div>
<button>${escapeHtml(button)}</button>
</form>
<details><summary class="note">Test cards</summary><table>${rows.join('')}</table></details>`
}

/** The page of a bank that asks its customer; what was filled in before comes along. */
function bankPage(form: URLSearchParams, summary: string): Page {
  const known = ['card', 'email', 'expiry', 'cvc'].map(
    (name) => `<input type="hidden" name="${name}" value="${escapeHtml(form.get(name) ?? '')}">`,
  )
  const content = `<h1>Your bank</h1><p class="price">Is it you?</p><p>The bank of this test card asks before it pays.</p>
<form method="post">${known.join('')}<button name="bank" value="yes">Complete authentication</button><button class="plain" name="bank" value="no">Fail authentication</button></form>`
  return { title: 'Your bank asks', summary, content }
}

const intervalWords = { month: 'per month', year: 'per year' } as const
const dayOf = (seconds: number): string => new Date(seconds * 1_000).toISOString().slice(0, 10)

const gone = (answer: ServerResponse, sentence: string): void =>
  sendPage(answer, goneStatus, {
    title: 'Nothing to pay here',
    summary: '<h1>Payment</h1>',
    content: `<p class="price">Nothing to pay here</p><p>${escapeHtml(sentence)}</p>`,
  })

const redirect = (answer: ServerResponse, url: string): void => {
  answer.writeHead(303, { location: url }).end()
}

const cardOf = (form: URLSearchParams): string => (form.get('card') ?? '').replace(/\D/g, '')

type Payment = {
  title: string
  summary: string
  button: string
  hasEmail: boolean
  /** A change is paid with the stored card, so that its form has no fields. */
  hasCard: boolean
  back: string | null
  pay: (payer: { card: string; isConfirmed: boolean }) => PaymentResult
  done: () => string | undefined
}

/** Shows a payment, or makes it with what was filled in. */
function payPage(method: string, { form, answer }: Form, payment: Payment): void {
  const { title, summary, button, hasEmail, hasCard, back, pay, done } = payment
  const show = (status: number, wrong?: string) => {
    const confirm = `<form method="post">${wrong === undefined ? '' : `<p class="wrong" role="alert">${escapeHtml(wrong)}</p>`}<p>It is paid with the card of the subscription.</p><button>${escapeHtml(button)}</button></form>`
    const email = hasEmail ? (form.get('email') ?? '') : undefined
    const paying = hasCard ? cardForm({ button, email, wrong }) : confirm
    const leave = back === null ? '' : `<p><a href="${escapeHtml(back)}">Back</a></p>`
    sendPage(answer, status, { title, summary, content: paying + leave })
  }
  const bank = form.get('bank')
  if (method !== 'POST') show(200)
  else if (bank === 'no') show(declineStatus, declineMessages.authentication_failed)
  else {
    const result = pay({ card: cardOf(form), isConfirmed: bank === 'yes' })
    if (result.paid) finish(answer, { summary, target: done() })
    else if ('asks' in result) sendPage(answer, 200, bankPage(form, summary))
    else show(declineStatus, declineMessages[result.decline] ?? 'Your card was declined.')
  }
}

/** Sends the payer back to the shop, or thanks where there is no way back. */
function finish(
  answer: ServerResponse,
  { summary, target }: { summary: string; target: string | undefined },
): void {
  if (target !== undefined) redirect(answer, target)
  else
    sendPage(answer, 200, {
      title: 'Paid',
      summary,
      content: '<p class="price">Paid</p><p>Thank you.</p>',
    })
}

const priceLine = (price: Price, title: string): string =>
  `<h1>${escapeHtml(title)}</h1><p class="price">${money(price.unit_amount, price.currency)} <span class="note">${intervalWords[price.recurring.interval]}</span></p>`

export function createPages({ shop, nowMs }: PageDeps) {
  const { store } = shop
  const nameOf = (price: Price) => store.get('product', price.product).name

  const sessionPage = (session: Session, method: string, given: Form): void => {
    if (session.status === 'complete') {
      gone(given.answer, 'This checkout was paid already.')
      return
    }
    if (session.status === 'expired') {
      gone(given.answer, 'This checkout has expired. Begin a new one.')
      return
    }
    const price = store.get('price', session.price)
    const title = `Subscribe to ${nameOf(price)}`
    payPage(method, given, {
      title,
      summary: priceLine(price, title),
      button: 'Subscribe',
      hasEmail: true,
      hasCard: true,
      back: session.cancel_url,
      pay: (payer) => paySession(shop, session, { ...payer, email: given.form.get('email') }),
      done: () => session.success_url.replaceAll('{CHECKOUT_SESSION_ID}', session.id),
    })
  }

  const portalPage = (portal: PortalSession, method: string, given: Form): void => {
    const subscription = store.get('subscription', portal.flow.subscription_update_confirm.subscription)
    if (portal.used || portal.expires_at * 1_000 <= nowMs() || subscription.status !== 'active') {
      gone(given.answer, 'This page was used, or it has expired.')
      return
    }
    const { price, credit, charge, total } = prorationOf(shop, portal)
    const currency = price.currency
    const rows = `<dl><dt>${escapeHtml(nameOf(price))}</dt><dd>${money(charge, currency)}</dd><dt>Unused time until ${dayOf(subscription.items.data[0].current_period_end)}</dt><dd>${money(-credit, currency)}</dd><dt class="total">Due today</dt><dd class="total">${money(total, currency)}</dd></dl>`
    const title = `Change to ${nameOf(price)}`
    payPage(method, given, {
      title,
      summary: priceLine(price, title) + rows,
      button: 'Confirm',
      hasEmail: false,
      hasCard: false,
      back: portal.return_url,
      pay: (payer) => confirmUpdate(shop, portal, payer),
      done: () => portal.flow.after_completion.redirect?.return_url,
    })
  }

  const invoicePage = (invoice: Invoice, method: string, given: Form): void => {
    if (invoice.status !== 'open') {
      gone(given.answer, 'This invoice is not open any more.')
      return
    }
    payPage(method, given, {
      title: 'Pay the invoice',
      summary: `<h1>Invoice of ${dayOf(invoice.created)}</h1><p class="price">${money(invoice.total, invoice.currency)}</p>`,
      button: 'Pay',
      hasEmail: false,
      hasCard: true,
      back: null,
      pay: (payer) => payInvoice(shop, invoice, payer),
      done: () => undefined,
    })
  }

  /** Answers a request for a page; returns false if there is none at its path. */
  return ({ method, path, form, answer }: PageRequest): boolean => {
    const [, kind, id = ''] = /^\/(c\/pay|p\/session|i)\/(\w+)$/.exec(path) ?? []
    tick(shop)
    const given = { form, answer }
    if (kind === 'c/pay') {
      const session = store.find('checkout.session', id)
      if (session) sessionPage(session, method, given)
      else gone(answer, 'There is no such checkout.')
    } else if (kind === 'p/session') {
      const portal = store.find('billing_portal.session', id)
      if (portal) portalPage(portal, method, given)
      else gone(answer, 'There is no such page.')
    } else if (kind === 'i') {
      const invoice = store.find('invoice', id)
      if (invoice) invoicePage(invoice, method, given)
      else gone(answer, 'There is no such invoice.')
    } else return false
    return true
  }
}
