import { portico } from '#sdk/client.ts'
import { PorticoError } from '#sdk/errors.ts'
import { oauthSession, signOut } from '#sdk/oauth-session.ts'
import { beginSignIn, completeSignIn } from '#sdk/oauth-sign-in.ts'
import { baseUrlOf } from './credentials.ts'
import { openLoopback } from './loopback-redirect.ts'
import { isRefusedClient, readClientId, writeClientId } from './oauth-client-file.ts'
import type { Options } from './operation-input.ts'
import { readSession, sessionStore } from './session-file.ts'
import { type Terminal, UsageError } from './terminal.ts'

const signInMs = 10 * 60_000

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** `portico login` signs a person in with a browser; later commands act for this person. */
export async function login(terminal: Terminal, { baseUrl: given, browser }: Options): Promise<void> {
  const baseUrl = baseUrlOf(terminal, textOf(given))
  await using loopback = await openLoopback()
  const { url, pending } = await beginAsClient(terminal, baseUrl, loopback.redirectUri)
  terminal.err(`Sign in with a browser of this machine:\n${url}\n`)
  if (browser !== false) terminal.openBrowser(url)
  const timeout = AbortSignal.timeout(signInMs)
  const returned = await loopback
    .receive(pending.state, AbortSignal.any([terminal.signal, timeout]))
    .catch((error: unknown) => {
      throw timeout.aborted ? new UsageError('Nobody signed in within 10 minutes') : error
    })
  const store = sessionStore(terminal, baseUrl)
  try {
    const tokens = await completeSignIn(pending, returned.url)
    await store.exclusive(() => store.write(tokens))
    const client = portico({ baseUrl, auth: oauthSession(store) })
    const { user_id } = await client.auth.signup({})
    terminal.out(`user_id   ${user_id}\nbase_url  ${baseUrl}\n`)
    returned.answer('You are signed in. Return to the terminal.')
  } catch (error) {
    const why = error instanceof PorticoError ? error.code : 'failed'
    if (why === 'invalid_client') writeClientId(terminal, baseUrl, undefined)
    returned.answer(`The sign-in did not succeed (${why}). Return to the terminal.`)
    throw error
  }
}

/**
 * Begins a sign-in with the OAuth client that this machine has at the gateway. A client is registered if there is none
 * yet, or if the gateway refuses it.
 */
async function beginAsClient(terminal: Terminal, baseUrl: string, redirectUri: string) {
  const begin = (clientId?: string) =>
    beginSignIn({
      baseUrl,
      redirectUri,
      clientId,
      clientName: 'Portico command line',
      // These scopes suffice for every command. On the consent page the person can remove those that allow more than
      // reading.
      scope: 'openid email offline_access trade earn chat manage propose',
    })
  const known = readClientId(terminal, baseUrl)
  if (known !== undefined) {
    const begun = await begin(known)
    if (!(await isRefusedClient(begun.url))) return begun
  }
  const begun = await begin()
  writeClientId(terminal, baseUrl, begun.pending.clientId)
  return begun
}

/** `portico logout` revokes the tokens at the gateway, and removes them from this machine. */
export async function logout(terminal: Terminal): Promise<void> {
  const session = readSession(terminal)
  if (!session) throw new UsageError('Nobody is signed in on this machine')
  await signOut(sessionStore(terminal, session.base_url))
  terminal.out(`signed out of ${session.base_url}\n`)
}
