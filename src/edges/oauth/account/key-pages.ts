import { actChoices, escapeHtml, field, tick } from '#edges/oauth/pages.ts'
import { buttonForm, confirmed, dayOf, rowOf, sectionOf, softLine, stepOf } from './account-html.ts'

/** The part of the account page about keys: a person makes one right after a sign-in, and reads it once. */

export type ShownKey = { clientId: string; name: string; may: readonly string[]; madeAt: Date; endsAt: Date }
export type KeysView = {
  list: readonly ShownKey[]
  /** Shown in the answer that made it, and never again. */
  made: { name: string; key: string } | undefined
  daysMax: number
  isFresh: boolean
  creditsPerDay: number
  creditsPerDayMax: number
}

const daysPreset = 30

const keyItem = ({ clientId, name, may, madeAt, endsAt }: ShownKey): string =>
  rowOf({
    title: escapeHtml(name),
    lines: [
      softLine(`Made ${dayOf(madeAt)} · ends ${dayOf(endsAt)}`),
      `<span class="small">${tick}${escapeHtml(may.join(', '))}</span>`,
    ],
    action: confirmed(
      { act: 'Revoke', what: name },
      'Clients that send it have no access at once, and webhooks that it has added are deleted. Its orders go on.',
      buttonForm('key-revoke', 'Revoke this key', { fields: { client_id: clientId } }),
    ),
  })

const madeText = ({ name, key }: { name: string; key: string }): string =>
  `<div class="asks" role="status"><h2>The key “${escapeHtml(name)}”</h2><p class="soft">Copy it now: it is not shown again. The client sends it in the header Authorization, after the word Bearer.</p><p class="mono">${escapeHtml(key)}</p></div>`

const makeForm = ({ daysMax, creditsPerDay, creditsPerDayMax }: KeysView): string =>
  `<details class="below"><summary>Make a key</summary><form method="post" action="${stepOf('key-make')}">${field('name', 'What is it for?', 'maxlength="64" autocomplete="off"')}${field('days', 'For how many days?', `type="number" min="1" max="${daysMax}" value="${daysPreset}"`)}
<fieldset><legend>It sees your wallets, balances, orders and history. May it also act?</legend>${actChoices({ scopes: [], creditsPerDay, creditsPerDayMax })}</fieldset><button class="main">Make the key</button></form></details>`

export function keySection(view: KeysView): string {
  const { list, made, isFresh } = view
  return sectionOf({
    id: 'keys',
    title: 'Keys',
    rows: list.map(keyItem),
    empty:
      'You have no key. Make one only for a client that cannot sign you in: everybody who has it acts for you.',
    after: `${made ? madeText(made) : ''}${isFresh ? makeForm(view) : buttonForm('sign-in', 'Sign in again to make a key', { look: 'quiet' })}`,
  })
}
