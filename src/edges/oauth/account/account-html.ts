import { escapeHtml } from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const twoDigits = (n: number): string => String(n).padStart(2, '0')
const dayText = (at: Date): string => `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`
/** Times are in UTC, because the page does not know where the person is. */
export const dayOf = (at: Date): string => `<time datetime="${at.toISOString()}">${dayText(at)}</time>`
export const timeText = (at: Date): string =>
  `${dayText(at)}, ${twoDigits(at.getUTCHours())}:${twoDigits(at.getUTCMinutes())} UTC`
export const timeOf = (at: Date): string => `<time datetime="${at.toISOString()}">${timeText(at)}</time>`

const units = [
  { name: 'day', ms: 86_400_000 },
  { name: 'hour', ms: 3_600_000 },
  { name: 'minute', ms: 60_000 },
]
export function timeLeft(at: Date, now: Date): string {
  const leftMs = at.getTime() - now.getTime()
  const unit = units.find(({ ms }) => leftMs >= ms)
  if (!unit) return 'in less than a minute'
  const count = Math.floor(leftMs / unit.ms)
  return `in ${count} ${unit.name}${count === 1 ? '' : 's'}`
}

/** Formats an amount with two decimals, or with all of its decimals if it is below one dollar. */
export const dollars = (usd: string): string => {
  const [whole = '0', fraction = ''] = usd.split('.')
  const shown = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  const digits = /^0*$/.test(whole) ? fraction : fraction.slice(0, 2)
  return `${shown}.${digits.padEnd(2, '0')} USD`
}

export const stepOf = (step: string): string => `${oauthPaths.account}/${step}`
export const hidden = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`

type FormOptions = { fields?: Record<string, string | undefined>; look?: 'bad' | 'quiet' | 'main' }
export const buttonForm = (
  step: string,
  button: string,
  { fields = {}, look = 'bad' }: FormOptions = {},
): string =>
  `<form method="post" action="${stepOf(step)}">${Object.entries(fields)
    .map(([name, value]) => (value === undefined ? '' : hidden(name, value)))
    .join('')}<button class="${look}">${button}</button></form>`

export const signOutForm = buttonForm('sign-out', 'Sign out of this browser', { look: 'quiet' })

/** Returns an act that a second click confirms, without a script. `what` names its object for screen readers. */
export const confirmed = (
  { act, what }: { act: string; what: string },
  sentence: string,
  form: string,
): string =>
  `<details><summary>${act}<span class="unseen"> ${escapeHtml(what)}</span></summary><div class="confirm"><p class="small">${sentence}</p>${form}</div></details>`

type Row = { title: string; lines: readonly string[]; badge?: string; action?: string }
/** Returns a row of a list; its title and lines are given as HTML. */
export const rowOf = ({ title, lines, badge = '', action = '' }: Row): string =>
  `<li class="row"><div class="what"><strong>${title}${badge}</strong>${lines.join('')}</div>${action}</li>`
export const softLine = (html: string): string => `<span class="soft small">${html}</span>`
export const badgeOf = (text: string): string => `<span class="badge">${text}</span>`

type Section = {
  id: string
  title: string
  rows: readonly string[]
  empty: string
  before?: string
  after?: string
}
export const sectionOf = ({ id, title, rows, empty, before = '', after = '' }: Section): string =>
  `<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${before}${
    rows.length > 0 ? `<ul class="rows">${rows.join('')}</ul>` : `<p class="soft empty">${empty}</p>`
  }${after}</section>`
