import type { Session } from 'oidc-provider'
import type { Exchange } from '#edges/oauth/provider/sign-in-request.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import { ownClientIds } from '#kernel/contract/caller.ts'

/** Whether the last sign-in of the session was made in a request of this client. */
export const isSignInOf = (
  { loginTs, authorizations }: Pick<Session, 'loginTs' | 'authorizations'>,
  clientId: string,
): boolean => loginTs !== undefined && authorizations?.[clientId]?.signedInTs === loginTs

export type SignedInSession = {
  /** The id of the session on the server, which stays the same while the cookie of the session changes. */
  uid: string
  personId: string
  signedInAtMs: number
  end(): Promise<void>
}
export type PageExchange = Pick<Exchange, 'request' | 'response' | 'provider' | 'address' | 'sessions'>

export async function findSession({
  provider,
  request,
  response,
  sessions,
}: PageExchange): Promise<SignedInSession | undefined> {
  const session: Session = await provider.Session.get(provider.createContext(request, response))
  const { uid, accountId, loginTs = 0 } = session
  if (accountId === undefined) return undefined
  return { uid, personId: accountId, signedInAtMs: loginTs * 1_000, end: () => sessions.end(uid) }
}

/** Signs the person out of this browser and of the pages of this gateway; connected apps keep their access. */
export async function signOut(
  session: SignedInSession,
  { end }: Pick<OAuth['connections'], 'end'>,
): Promise<void> {
  for (const clientId of ownClientIds) await end(session.personId, clientId)
  // The session ends last, because without it the person could not repeat the sign-out.
  await session.end()
}
