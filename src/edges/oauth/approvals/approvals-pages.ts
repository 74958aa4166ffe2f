import { dollars, signOutForm, timeLeft } from '#edges/oauth/account/account-html.ts'
import { escapeHtml, page, shownName, tick } from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'

export type ShownApproval = {
  approval_id: string
  intent: {
    text: string
    chain: string | null
    chain_id: string | null
    token: string | null
    amount: string | null
    usd: string | null
    /**
     * What would change, by name, if the request is for higher limits or more permissions; absent for a request that
     * moves money.
     */
    details?: readonly { name: string; value: string }[]
    recipient: string | null
    venue: string | null
    asset: string | null
    /** The cost in words; absent in requests that an earlier release made. */
    cost?: string | null
    agent_id: string
    /** The name of the app, or null if a key pair asked. */
    app: string | null
    isOwnPage: boolean
    /** The name of a linked agent, or null if no name is known. */
    agentName: string | null
    /** What the person calls the recipient, or null if the address is no recipient of the person. */
    recipientLabel: string | null
    reason: string
  }
  intent_sha256: string
  expires_at: string
}
export type ApprovalsView = {
  email: string
  approvals: readonly ShownApproval[]
  /** How many requests wait, including those that are not shown. */
  total: number
  isNamed: boolean
  now: Date
  notice: Notice | undefined
}

const notices = {
  approved: 'Approved. It is checked once more and runs now; the agent or app that asked sees the result.',
  declined: 'Declined. Nothing was moved or changed.',
  late: 'It was decided, cancelled or over before. Nothing was changed.',
  contested:
    'The holder of the key of this agent contests its link to you. You can decline, and unlink the agent. Nothing was changed.',
  young:
    'This agent was linked a short time ago. You can decline its requests, and approve them later. Nothing was changed.',
}
export type Notice = keyof typeof notices
export const isNotice = (text: unknown): text is Notice =>
  typeof text === 'string' && Object.hasOwn(notices, text)

const row = (label: string, html: string): string => `<div><dt>${label}</dt><dd>${html}</dd></div>`
const mono = (text: string): string => `<span class="mono">${escapeHtml(text)}</span>`
const named = (name: string | null, id: string): string => {
  const shown = shownName(name ?? '')
  return shown === '' ? mono(id) : `${escapeHtml(shown)}<br>${mono(id)}`
}

/** Shortens an address for a heading; the figures below it have the whole address. */
const shortened = (address: string): string =>
  address.length < 16 ? address : `${address.slice(0, 6)}…${address.slice(-4)}`

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

type Intent = ShownApproval['intent']
const ownerText = ({ agentName, app, agent_id }: Intent): string => {
  if (app !== null) return 'your wallet'
  const name = shownName(agentName ?? '')
  return name === '' ? `the wallet of ${agent_id}` : `the wallet of ${name}`
}

/** Addresses and ids are set in a font in which they can be read letter by letter. */
const detail = (value: string): string => (/^\S{20,}$/.test(value) ? mono(value) : escapeHtml(value))

function movement(intent: Intent): string {
  if (intent.details)
    return intent.details.map(({ name, value }) => row(escapeHtml(name), detail(value))).join('')
  const { token, amount, recipient, venue, asset, usd, chain, cost, recipientLabel } = intent
  const sum = amount === null ? null : `${amount}${token === null ? '' : ` ${token}`}`
  // An order at a venue names one market as token and as asset, and the money stays in the person's account there.
  const isOrder = venue !== null && asset !== null && asset === token
  const worth = dollars(usd ?? '0')
  const leaves = sum ?? worth
  const lines = [
    isOrder
      ? row('Trades', escapeHtml(`${leaves} in your account at ${venue}`))
      : row('Leaves', escapeHtml(`${leaves} from ${ownerText(intent)}`)),
    ...(sum === null ? [] : [row('Worth', escapeHtml(`${worth} at the time of the request`))]),
    ...(recipient === null
      ? []
      : [row('Goes to', named(recipientLabel ?? (venue === null ? null : venue), recipient))]),
    ...(!isOrder && asset !== null ? [row('Comes back', escapeHtml(asset))] : []),
    ...(chain === null ? [] : [row('Chain', escapeHtml(chain))]),
    ...(cost ? [row('Costs', escapeHtml(sentence(cost)))] : []),
  ]
  return lines.join('')
}

/** Returns who asks; a request from a page of this gateway names no app either, so `isOwnPage` decides first. */
const askerOf = ({ app, isOwnPage }: Intent): string => {
  if (isOwnPage) return 'You ask'
  return app === null ? 'An agent asks' : 'An app asks'
}

function approvalCard(
  { approval_id, intent, intent_sha256, expires_at }: ShownApproval,
  view: ApprovalsView,
) {
  const { text, recipient, agent_id, app, agentName, reason, details } = intent
  const form = (decision: string, button: string) =>
    `<form method="post" action="${escapeHtml(`${oauthPaths.approvals}/${encodeURIComponent(approval_id)}/${decision}`)}"><input type="hidden" name="intent_sha256" value="${escapeHtml(intent_sha256)}">${button}</form>`
  const heading = escapeHtml(recipient === null ? text : text.replace(recipient, shortened(recipient)))
  const id = escapeHtml(`asks-${approval_id}`)
  const describes = `aria-describedby="${id}"`
  const asker =
    app === null ? named(agentName, agent_id) : escapeHtml(shownName(app) || 'an app without a name')
  return `<section class="asks" aria-labelledby="${id}"><p class="small soft who-asks">${askerOf(
    intent,
  )} · ends ${timeLeft(new Date(expires_at), view.now)}</p><h2 id="${id}">${heading}</h2>
<dl class="who">${movement(intent)}${intent.isOwnPage ? '' : row('Asked by', asker)}${row('Why you', escapeHtml(sentence(reason)))}</dl>
<div class="choices">${form('decline', `<button class="bad" ${describes}>Decline</button>`)}${form('approve', `<button class="main" ${describes}>${details ? 'Confirm' : 'Approve'}</button>`)}</div></section>`
}

const links = `<p class="links"><a href="${oauthPaths.approvals}">Refresh</a><a href="${oauthPaths.account}">Your account</a></p>${signOutForm}`

export function approvalsPage(view: ApprovalsView): string {
  const { approvals, total, email, notice, isNamed } = view
  const said =
    notice === undefined
      ? ''
      : `<p class="done" role="status">${tick}<span>${escapeHtml(notices[notice])}</span></p>`
  const count = total === 1 ? '1 request waits' : `${total} requests wait`
  const account = `<p class="soft">Signed in as <strong>${escapeHtml(email)}</strong></p>`
  if (approvals.length === 0)
    return page(
      'Approvals',
      `<h1>${isNamed ? 'This does not wait for you' : 'Nothing waits for you'}</h1>${account}${said}<div class="none">${tick}<p class="soft">Requests that are reserved for you appear here. Each waits for 30 minutes.</p></div>${links}`,
    )
  const cards = approvals.map((each) => approvalCard(each, view)).join('')
  const rest = total - approvals.length
  const more =
    rest > 0
      ? `<p class="small soft below">${rest} more wait. They appear once you have decided about some of these.</p>`
      : ''
  return page(
    'Approvals',
    `<h1>${count} for you</h1>${account}${said}<p class="small soft below">Allow only what you asked for, and read each address to its end. Prices, balances and your limits are checked again before anything is done.</p>${cards}${more}${links}`,
    { isWide: true },
  )
}

export const approvalsErrorPage = (text: string, code: string): string =>
  page(
    'Approvals',
    `<h1>This cannot go on</h1><p class="soft">${escapeHtml(text)}</p><p class="small soft">Error: ${escapeHtml(code)}.</p><p class="links"><a href="${oauthPaths.approvals}">Open the approvals</a><a href="${oauthPaths.account}">Your account</a></p>`,
  )
