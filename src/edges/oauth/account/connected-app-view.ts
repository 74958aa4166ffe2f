import { shownName } from '#edges/oauth/pages.ts'
import { actingScopes } from '#edges/oauth/paths-and-scopes.ts'
import type { Connection } from '#features/oauth/connected-apps.ts'
import type { ShownApp } from './account-pages.ts'
import type { ShownKey } from './key-pages.ts'

const mayTexts: Record<(typeof actingScopes)[number], string> = {
  trade: 'trades',
  earn: 'uses the vault',
  chat: 'chats',
  manage:
    'lowers limits, stops trading, manages webhooks, and acknowledges the disclaimer on prediction markets',
  propose: 'asks you to raise limits, to add recipients and to link agents',
}

/** Returns a key as a list of one; an app that has signed in is none. */
export const shownKey = (connection: Connection): ShownKey[] => {
  const { keyEndsAt: endsAt, connectedAt: madeAt } = connection
  const { clientId, name, may } = shownApp(connection)
  return endsAt ? [{ clientId, name, may, madeAt, endsAt }] : []
}

export const shownApp = ({
  clientId,
  clientName,
  scopes,
  creditsPerDay,
  postsTo,
  connectedAt,
}: Connection): ShownApp => ({
  clientId,
  // Another authorization server does not report the name of an app, so the host of the app's address is shown.
  name: shownName(clientName ?? '') || URL.parse(clientId)?.host || shownName(clientId),
  publisher: clientName === null ? URL.parse(clientId)?.host : undefined,
  may: [
    'Reads',
    ...actingScopes.filter((scope) => scopes.includes(scope)).map((scope) => mayTexts[scope]),
    ...(scopes.includes('chat')
      ? [creditsPerDay === 0 ? 'spends no credits' : `spends up to ${creditsPerDay} credits a day`]
      : []),
  ],
  postsTo: postsTo.map((origin) => URL.parse(origin)?.host ?? origin),
  connectedAt,
})
