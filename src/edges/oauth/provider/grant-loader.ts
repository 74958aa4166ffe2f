import type { Provider, Session } from 'oidc-provider'
import type { Grants } from '#features/oauth/grant-revocation.ts'
import type { Sessions } from '#features/oauth/sessions.ts'
import { isOwnClient, ownClientIds } from '#kernel/contract/caller.ts'

type GrantContext = {
  oidc: {
    provider: Provider
    client: { clientId: string }
    session: Pick<Session, 'accountId' | 'loginTs' | 'authorizations'> & {
      grantIdFor(clientId: string): string | undefined
      authorizationFor(clientId: string, make: true): { signedInTs?: number }
    }
    result?: { login?: { enteredAtMs?: number }; consent?: { grantId?: string } }
  }
}

type LoaderDeps = { grants: Pick<Grants, 'isContested'>; sessions: Pick<Sessions, 'enter'> }
/**
 * Creates the function that finds the existing grant of a client. A contested grant is not used again: the person
 * decides anew, and the new grant replaces it.
 */
export const createGrantLoader =
  ({ grants, sessions }: LoaderDeps) =>
  async ({ oidc }: GrantContext) => {
    const { provider, client, session, result } = oidc
    sessions.enter(session, result?.login?.enteredAtMs)
    // A sign-in is fresh only for the app that asked for it; the pages of the gateway count as one app.
    if (result?.login && session.loginTs !== undefined)
      for (const id of isOwnClient(client.clientId) ? ownClientIds : [client.clientId])
        session.authorizationFor(id, true).signedInTs = session.loginTs
    const given = result?.consent?.grantId
    if (given) return provider.Grant.find(given)
    const known = session.grantIdFor(client.clientId)
    return known && !(await grants.isContested(known)) ? provider.Grant.find(known) : undefined
  }
