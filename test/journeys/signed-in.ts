/** A person who signs in at a gateway process with a browser, and acts through an app that may act for them. */

import type { Scope } from '#kernel/contract/caller.ts'
import type { Gateway } from '../harness/gateway.ts'
import { confirming } from '../oauth/confirming.ts'
import {
  type ConnectingPerson,
  type Connection,
  connectingPerson,
  type SignInApp,
  signUpUser,
  tokenRequest,
} from '../oauth/session.ts'
import { type Person, personOf } from './users.ts'

/** The sign-up code of an address, as the gateway prints it. */
export const codeIn = (lines: readonly string[], email: string): string | undefined =>
  lines
    .filter((each) => each.startsWith(`email  ${email}: `))
    .flatMap((each) => /: (\d{8}) is your Portico code/.exec(each)?.[1] ?? [])
    .at(-1)

export const everyBox: readonly Scope[] = ['trade', 'earn', 'chat', 'manage', 'propose']
type SignInGateway = Pick<Gateway, 'url' | 'lines'>

export const signInApp = (gateway: SignInGateway): SignInApp => ({
  base: gateway.url,
  codeFor: (email: string) => {
    const code = codeIn(gateway.lines, email)
    if (!code) throw new Error(`no code for ${email}`)
    return code
  },
})

/** What allows more is confirmed on the page, so that each call answers with what it has changed. */
export type SignedIn = Person & {
  email: string
  /** A call whose answer nobody confirms. */
  send: Person['call']
  pageToken(): Promise<string>
  /** The notice of the page after the press; undefined where the request does not wait for this person. */
  decide(approvalId: string, decision?: 'approve' | 'decline'): Promise<string | undefined>
}

type PersonWithApp = {
  person: SignedIn
  app: Person
  email: string
  connecting: ConnectingPerson
  connection: Connection
  renew: () => Promise<void>
}
/** A person, and an app of theirs that confirms nothing; `renew` gives it a token for ten more minutes. */
export async function personWithApp(gateway: SignInGateway): Promise<PersonWithApp> {
  const connecting = connectingPerson(signInApp(gateway))
  const { email } = connecting
  const connection = await connecting.connect({ allows: everyBox })
  const { clientId, tokens, authorization } = connection
  const { body } = await signUpUser(signInApp(gateway), authorization)
  const { agent_id: agentId } = body as { agent_id: string }
  const access = { agentId, token: tokens.access_token } as Parameters<typeof personOf>[1]
  const app = await personOf(gateway.url, access)
  let refreshToken = tokens.refresh_token
  const confirmed = confirming(connecting, gateway.url, authorization)
  const person: SignedIn = {
    ...app,
    email,
    send: app.call,
    pageToken: connecting.pageToken,
    call: async (route, options) => confirmed(await app.call(route, options)),
    async decide(approvalId, decision) {
      const page = await connecting
        .confirm(`${gateway.url}/oauth/approvals/${approvalId}`, decision)
        .catch(() => undefined)
      return page && /role="status">.*?<span>([^<]*)/s.exec(page.html)?.[1]
    },
  }
  const renew = async () => {
    const fields = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }
    const renewed = await tokenRequest(signInApp(gateway), fields)
    access.token = renewed.access_token
    refreshToken = renewed.refresh_token
  }
  return { person, app, email, connecting, connection, renew }
}

export const signedInPerson = async (gateway: SignInGateway): Promise<SignedIn> =>
  (await personWithApp(gateway)).person
