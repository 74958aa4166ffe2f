import { AuthenticationError, connectionError, errorOf, PorticoError } from './errors.ts'
import { type OAuthTokens, postForm, tokensOf } from './oauth-sign-in.ts'
import type { TokenProvider } from './token-source.ts'

type Fetch = typeof globalThis.fetch

/** Stores the tokens of one sign-in for every client, tab or process that uses this sign-in. */
export type TokenStore = {
  read: () => Promise<OAuthTokens | undefined>
  /** Stores the tokens in place of the stored ones; undefined removes the stored tokens. */
  write: (tokens: OAuthTokens | undefined) => Promise<void>
  /**
   * Runs one function at a time across all users of the store, because the server ends a sign-in whose refresh token is
   * used twice.
   */
  exclusive: <T>(run: () => Promise<T>) => Promise<T>
}

export function memoryTokenStore(tokens?: OAuthTokens): TokenStore {
  let known = tokens
  let last: Promise<unknown> = Promise.resolve()
  return {
    read: async () => known,
    async write(next) {
      known = next
    },
    exclusive(run) {
      const result = last.then(run)
      last = result.catch(() => {})
      return result
    },
  }
}

/** A token is renewed this long before its end. */
const marginMs = 30_000

const signedOut = (detail: string) => errorOf(401, { code: 'signed_out', detail, retryable: false })

type SessionOptions = { fetch?: Fetch | undefined }

/** Makes the `auth` of a client: the access token of the store, renewed before its end or after a refusal. */
export function oauthSession(
  store: TokenStore,
  { fetch = globalThis.fetch.bind(globalThis) }: SessionOptions = {},
): TokenProvider {
  const renew = async (refused: string | undefined): Promise<OAuthTokens> => {
    const tokens = await store.read()
    if (!tokens) throw signedOut('Nobody is signed in')
    // Another holder of the store may have renewed the tokens meanwhile.
    if (isUsable(tokens, refused)) return tokens
    const { refreshToken, clientId, tokenEndpoint } = tokens
    if (refreshToken === undefined) throw signedOut('The sign-in has ended')
    const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId }
    const answer = await postForm(fetch, tokenEndpoint, fields).catch((error: unknown) => {
      if (error instanceof AuthenticationError && error.code === 'invalid_grant') return undefined
      throw error
    })
    if (!answer) return afterRefusal(tokens, refused)
    const { accessToken: _, endsAtMs: __, ...client } = tokens
    const next = tokensOf(answer, client)
    await store.write(next)
    return next
  }
  /** Removes the refused tokens from the store, unless a new sign-in has replaced them meanwhile. */
  const afterRefusal = async ({ refreshToken }: OAuthTokens, refused: string | undefined) => {
    const now = await store.read()
    if (now && now.refreshToken !== refreshToken && isUsable(now, refused)) return now
    if (now?.refreshToken === refreshToken) await store.write(undefined)
    throw signedOut('The sign-in has ended or was revoked')
  }
  return async ({ refused }) => {
    const known = await store.read()
    const tokens = known && isUsable(known, refused) ? known : await store.exclusive(() => renew(refused))
    return { token: tokens.accessToken, expiresInSeconds: (tokens.endsAtMs - Date.now()) / 1_000 }
  }
}

const isUsable = ({ accessToken, endsAtMs }: OAuthTokens, refused: string | undefined): boolean =>
  accessToken !== refused && Date.now() < endsAtMs - marginMs

/**
 * Revokes the tokens at the server, access tokens included, and then removes them. If the server is away, the
 * sign-out fails and the tokens stay, since the sign-in still exists there; repeat the sign-out then.
 */
export async function signOut(
  store: TokenStore,
  { fetch = globalThis.fetch.bind(globalThis) }: SessionOptions = {},
): Promise<void> {
  await store.exclusive(async () => {
    const tokens = await store.read()
    const failure = tokens && (await revoke(fetch, tokens))
    if (failure instanceof PorticoError && failure.retryable) throw stillSignedIn(failure)
    await store.write(undefined)
    if (failure !== undefined) throw failure
  })
}

async function revoke(fetch: Fetch, tokens: OAuthTokens): Promise<unknown> {
  const { revocationEndpoint: url, clientId, refreshToken, accessToken } = tokens
  if (url === undefined) return undefined
  return postForm(fetch, url, { client_id: clientId, token: refreshToken ?? accessToken }).then(
    () => undefined,
    (error: unknown) => error,
  )
}

const stillSignedIn = (cause: PorticoError) =>
  connectionError(
    'connection_failed',
    `The server revoked nothing (${cause.message}). You are still signed in: sign out again when it answers, or disconnect this app on the account page of the gateway`,
    cause,
  )
