import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Interaction, Provider } from 'oidc-provider'
import { hasPasskeyScript, pageHeaders, shownName } from '#edges/oauth/pages.ts'
import type { Person, Refusal } from '#features/oauth/email-sign-in.ts'
import type { Sessions } from '#features/oauth/sessions.ts'
import type { Form } from './request-bodies.ts'

export type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  provider: Provider
  uid: string
  address: string
  startedAt: Date
  sessions: Pick<Sessions, 'end'>
}
export type SignInStep = (exchange: Exchange, interaction: Interaction, form: Form) => Promise<void>
/** A way for people to sign in: its page, and the forms on it. */
export type SignInMethod = {
  show(exchange: Exchange, interaction: Interaction, view?: string): Promise<void>
  steps: Record<string, SignInStep>
  /** Handles the return of the browser with this query; only a sign-in at another server has this function. */
  receive?(exchange: Exchange, interaction: Interaction, query: string): Promise<void>
}

export const refusals: Record<Refusal, string> = {
  credentials: 'The email or the password is wrong.',
  email: 'Enter a valid email address.',
  password: 'The password needs 10 to 256 characters.',
  code: 'This code is wrong. Check the latest message.',
  expired: 'The code has expired, or was tried too often. Ask for a new one.',
  limited:
    'Too many attempts. Wait 15 minutes and try again; after many messages to one address it takes up to an hour.',
  crowded:
    'Too many wrong passwords for this account from other places. Sign in with a code by email, or wait 15 minutes.',
  overloaded: 'Too many people sign in at this moment. Try again, or sign in with a code by email.',
  notSent: 'The message could not be sent. Try again in a moment.',
  passkeyUnknown: 'This passkey did not sign you in. It may have been removed here; try another way.',
  passkeyInvalid: 'The passkey could not be checked. Try again.',
  passkeyExpired: 'This took too long, or was tried twice. Try again.',
  passkeyTaken: 'This passkey is in use already. Create another one.',
  passkeysFull: 'The account has 10 passkeys. Remove one first.',
  unverified: 'Your account there has no verified email address. Verify it there, then try again.',
  taken: 'Another account of this gateway has your email address. Ask its operator for help.',
  interrupted: 'This sign-in was interrupted. Start it again.',
  declined: 'You did not sign in there. Try again.',
  rejected: 'The answer of the identity provider is not valid. Start again.',
}

/** Returns the source expression of Content-Security-Policy for the redirect of a client. */
export function formSource(redirectUri: unknown): string | undefined {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri) : null
  if (!url) return undefined
  // An IPv6 address is no source expression, and a custom scheme has no origin.
  if (!/^https?:$/.test(url.protocol) || url.hostname.startsWith('[')) return url.protocol
  return url.origin
}

export function send({ response }: Exchange, status: number, html: string, form?: string): void {
  response.writeHead(status, pageHeaders({ form, hasScript: hasPasskeyScript(html) })).end(html)
}

export function sendJson({ response }: Pick<Exchange, 'response'>, status: number, body: object): void {
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
    .end(JSON.stringify(body))
}

export async function clientOf({ provider }: Exchange, { params }: Interaction) {
  const client = await provider.Client.find(String(params.client_id))
  return { client, name: shownName(client?.clientName ?? '') || 'an app without a name' }
}

/**
 * Stores the result of the person and sends the browser back to the authorization endpoint. The result of the previous
 * page is kept; without it a client that asks for `login consent` would get a second sign-in.
 */
export async function finish({ provider, request, response }: Exchange, result: object): Promise<void> {
  const location = await provider.interactionResult(request, response, result, {
    mergeWithLastSubmission: true,
  })
  response.writeHead(303, { location, 'cache-control': 'no-store', 'content-length': '0' }).end()
}
const secondsOf = (time: Date): number => Math.floor(time.getTime() / 1_000)
/**
 * The time, in Unix seconds, that stands for an unknown time of sign-in. It is so old that the sign-in never counts as
 * fresh.
 */
export const unknownSignInSeconds = 1

export type Entry = {
  amr: readonly string[]
  /** When the credentials were given: null if that is not known, and now if it is left out. */
  at?: Date | null
  /**
   * A revocation of all access before this moment does not end the session of this sign-in. The default is the start of
   * the request.
   */
  enteredAt?: Date | undefined
}
type SignIn = Entry & { interaction: Interaction }
export async function signedIn(
  exchange: Exchange,
  { id }: Person,
  { amr, interaction, at = new Date(), enteredAt = exchange.startedAt }: SignIn,
): Promise<void> {
  const { accountId } = interaction.session ?? {}
  if (accountId !== undefined && accountId !== id) await leaveSession(exchange, interaction)
  // The time of the sign-in is that of this page, because a consent that follows is no sign-in.
  const ts = at === null ? unknownSignInSeconds : secondsOf(at)
  const enteredAtMs = enteredAt.getTime()
  await finish(exchange, { login: { accountId: id, remember: true, amr, ts, enteredAtMs } })
}

/** Ends the session of the person who was signed in before, because another person signs in with this browser. */
async function leaveSession({ provider, request, response, sessions }: Exchange, interaction: Interaction) {
  const session = await provider.Session.get(provider.createContext(request, response))
  delete interaction.session
  await interaction.persist()
  await sessions.end(session.uid)
}

/** Returns the interaction that the cookie names, or undefined if the path names another one. */
export async function findInteraction({
  provider,
  request,
  response,
  uid,
}: Exchange): Promise<Interaction | undefined> {
  const interaction = await provider.interactionDetails(request, response).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'SessionNotFound') return undefined
    throw error
  })
  return interaction?.uid === uid ? interaction : undefined
}
