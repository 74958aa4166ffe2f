import { alert, escapeHtml, field, page, passkeyForm, tick } from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { passkeyScriptElement } from '#edges/oauth/sign-in/passkey-script.ts'
import type { Passkey } from '#features/oauth/passkey-store.ts'
import {
  badgeOf,
  buttonForm,
  confirmed,
  dayOf,
  rowOf,
  sectionOf,
  signOutForm,
  softLine,
  stepOf,
} from './account-html.ts'
import type { DoneTask, OwnAccount, Webhook } from './account-reader.ts'
import { agentSection, noticeOf } from './agent-pages.ts'
import { type KeysView, keySection } from './key-pages.ts'
import { limitSection, recipientSection, tradingSection } from './limit-sections.ts'
import { activitySection, moneySection, payInSection } from './money-sections.ts'

/** This page shows a person the money of the account and what may act for it, and lets the person undo it. */

export type ShownApp = {
  clientId: string
  name: string
  /** Who published the app's metadata; absent if the app registered itself. */
  publisher: string | undefined
  may: readonly string[]
  postsTo: readonly string[]
  connectedAt: Date
}
export type AccountView = {
  email: string
  /** The limits and wallets of the person; absent before the sign-up, when the person has none. */
  account: OwnAccount | undefined
  unread: string | undefined
  /** The passkeys of the person; absent if people sign in at another server. */
  passkeys:
    | {
        list: readonly Passkey[]
        max: number
        isPossible: boolean
        suggestedName: string
        isFresh: boolean
      }
    | undefined
  apps: readonly ShownApp[]
  /** The keys of the person; absent if another server gives apps their tokens. */
  keys: KeysView | undefined
  /** The server that gives apps their tokens; absent if it is this gateway. */
  appServer: string | undefined
  now: Date
  chainName: (chainId: string) => string
  /** Whether chains and money are those of the local world. */
  isLocal: boolean
  notice?: string | undefined
  error?: string | undefined
}

const passkeyItem = (
  { id, name, isSynced, createdAt, lastUsedAt }: Passkey,
  { isFresh }: { isFresh: boolean },
): string =>
  rowOf({
    title: escapeHtml(name),
    lines: [
      softLine(
        `Added ${dayOf(createdAt)} · ${lastUsedAt ? `last used ${dayOf(lastUsedAt)}` : 'not used since'}${isSynced ? ' · synced between your devices' : ''}`,
      ),
    ],
    action: isFresh
      ? confirmed(
          { act: 'Remove', what: name },
          'It no longer signs you in. A code by email always does.',
          buttonForm('passkey-remove', 'Remove this passkey', { fields: { id } }),
        )
      : '',
  })

const addForm = (suggestedName: string): string =>
  passkeyForm({
    kind: 'create',
    action: stepOf('passkey-add'),
    options: stepOf('passkey-add-options'),
    fields: field(
      'name',
      'Name of the new passkey',
      `maxlength="60" autocomplete="off" value="${escapeHtml(suggestedName)}"`,
    ),
    button: 'Add a passkey',
    look: 'main',
  })

function passkeySection({ passkeys }: AccountView): string {
  if (!passkeys) return ''
  const { list, max, isPossible, suggestedName, isFresh } = passkeys
  const change = () => {
    if (!isFresh) return buttonForm('sign-in', 'Sign in again to change passkeys', { look: 'quiet' })
    if (!isPossible)
      return '<p class="small soft">Passkeys need a name and https, or localhost: they cannot be added at this address.</p>'
    if (list.length >= max) return `<p class="small soft">An account has at most ${max} passkeys.</p>`
    return `${addForm(suggestedName)}<p class="small soft" data-without-passkeys>This browser offers no passkeys.</p>`
  }
  return sectionOf({
    id: 'passkeys',
    title: 'Passkeys',
    rows: list.map((each) => passkeyItem(each, { isFresh })),
    empty:
      'You have no passkey. With one you sign in by fingerprint, face or PIN, and no site can trick it out of you.',
    after: change(),
  })
}

/**
 * If apps get their tokens at another authorization server, that server may issue new tokens in place of those that
 * this gateway refuses.
 */
const untilEndedAt = (appServer: string): string =>
  `An app may get new tokens at ${appServer}, until you disconnect it there.`
export const disconnectedText = (appServer: string | undefined): string =>
  appServer === undefined
    ? 'The app is disconnected.'
    : `The tokens of the app are refused here. ${untilEndedAt(appServer)}`
const disconnectWarning = (appServer: string | undefined): string =>
  appServer === undefined
    ? 'Its access ends at once, and webhooks that it has added are deleted. Its orders go on.'
    : `Tokens that it has are refused here at once, and webhooks that it has added are deleted. Its orders go on. ${untilEndedAt(appServer)}`

const appItem = (
  { clientId, name, publisher, may, postsTo, connectedAt }: ShownApp,
  appServer: string | undefined,
): string =>
  rowOf({
    title: escapeHtml(name),
    lines: [
      softLine(
        `${publisher === undefined ? '' : `by ${escapeHtml(publisher)} · `}Connected ${dayOf(connectedAt)}`,
      ),
      `<span class="small">${tick}${escapeHtml(may.join(', '))}</span>`,
      ...(postsTo.length > 0
        ? [`<span class="small">${tick}Sends your events to ${escapeHtml(postsTo.join(', '))}</span>`]
        : []),
    ],
    action: confirmed(
      { act: 'Disconnect', what: name },
      escapeHtml(disconnectWarning(appServer)),
      buttonForm('disconnect', 'Disconnect this app', { fields: { client_id: clientId } }),
    ),
  })

const appSection = ({ apps, appServer }: AccountView): string =>
  sectionOf({
    id: 'apps',
    title: 'Connected apps',
    rows: apps.map((each) => appItem(each, appServer)),
    empty: 'No app has access to your account.',
  })

const typesText = (types: readonly string[] | null): string => {
  if (types === null) return 'Every event'
  return types.length === 1 ? '1 type of events' : `${types.length} types of events`
}
const webhookItem = ({ webhook_id: id, url, types, description, status }: Webhook): string =>
  rowOf({
    title: escapeHtml(description || URL.parse(url)?.host || url),
    lines: [
      `<span class="mono small">${escapeHtml(url)}</span>`,
      softLine(`${typesText(types)} · ${status === 'enabled' ? 'sends' : 'stopped'}`),
    ],
    action: confirmed(
      { act: 'Remove', what: url },
      'Your events are no longer posted there.',
      buttonForm('webhook-remove', 'Remove this webhook', { fields: { webhook_id: id } }),
    ),
  })

const webhookSection = ({ webhooks }: OwnAccount): string =>
  webhooks.length === 0
    ? ''
    : sectionOf({ id: 'webhooks', title: 'Webhooks', rows: webhooks.map(webhookItem), empty: '' })

const requestRow = (waiting: number): string =>
  `<ul class="rows first">${rowOf({
    title: `<a href="${oauthPaths.approvals}">Requests that wait for you</a>`,
    badge: waiting === 0 ? '' : badgeOf(`${waiting} ${waiting === 1 ? 'waits' : 'wait'}`),
    lines: [
      softLine(waiting === 0 ? 'Nothing waits for your decision.' : 'Approve or decline them on their page.'),
    ],
  })}</ul>`

function ownSections(view: AccountView): string {
  const { account, unread, now, chainName } = view
  if (unread !== undefined)
    return `<p class="soft empty below">Money, limits, agents and recipients cannot be shown now. ${escapeHtml(unread)}</p>${buttonForm('stop', 'Stop all trading')}`
  if (!account)
    return '<p class="soft empty below">Money, limits, agents and recipients appear here once you have signed up in an app.</p>'
  const limits = { ...account, now, chainName }
  const askerOf = ({ client_id: clientId }: DoneTask): string => {
    if (clientId === null) return 'By this gateway, for you'
    const app = [...view.apps, ...(view.keys?.list ?? [])].find((each) => each.clientId === clientId)
    return app ? `By ${escapeHtml(app.name)}` : 'By an app that is connected no more'
  }
  const activity = { tasks: account.tasks, askerOf, empty: 'Nothing was done in your account yet.' }
  return `${requestRow(account.waiting)}${moneySection(account.money, view.chainName)}${payInSection({ ...limits, isLocal: view.isLocal })}${activitySection(activity)}${tradingSection(limits)}${limitSection(limits)}${agentSection(limits)}${recipientSection(limits)}`
}

export function accountPage(view: AccountView): string {
  const { email, notice, error, account } = view
  return page(
    'Your account',
    `<h1>Your account</h1><p class="soft">${escapeHtml(email)}</p>${noticeOf(notice)}${alert(error)}${ownSections(view)}${passkeySection(view)}${appSection(view)}${view.keys ? keySection(view.keys) : ''}${account ? webhookSection(account) : ''}
<ul class="rows first">${everywhereRow(view)}</ul>${signOutForm}${view.passkeys ? passkeyScriptElement : ''}`,
    { isWide: true },
  )
}

const everywhereRow = ({ appServer }: AccountView): string =>
  rowOf({
    title: 'Every browser and app',
    lines: [softLine('For when somebody else may have signed in.')],
    action: confirmed(
      { act: 'Sign out', what: 'everywhere' },
      appServer === undefined
        ? 'Every browser is signed out, every app is disconnected, and all webhooks are deleted. Linked agents stay.'
        : `Every browser is signed out here, tokens that apps have are refused here, and all webhooks are deleted. Linked agents stay. ${escapeHtml(untilEndedAt(appServer))}`,
      buttonForm('sign-out-everywhere', 'Sign out everywhere'),
    ),
  })

function leftText(from: 'browser' | 'everywhere', appServer: string | undefined): string {
  if (from === 'browser') return 'Connected apps keep their access until you disconnect them.'
  return appServer === undefined
    ? 'Every browser is signed out, and every app is disconnected.'
    : `Every browser is signed out here, and tokens that apps have are refused here. ${untilEndedAt(appServer)}`
}
export const signedOutPage = (from: 'browser' | 'everywhere', appServer: string | undefined): string =>
  page(
    'Signed out',
    `<h1>You are signed out</h1><p class="soft">${escapeHtml(leftText(from, appServer))}</p>
<p class="links"><a href="${oauthPaths.account}">Sign in again</a></p>`,
  )

export const accountErrorPage = (text: string, code: string): string =>
  page(
    'Your account',
    `<h1>This cannot go on</h1><p class="soft">${escapeHtml(text)}</p><p class="small soft">Error: ${escapeHtml(code)}.</p><p class="links"><a href="${oauthPaths.account}">Your account</a></p>`,
  )
