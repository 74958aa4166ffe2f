import { createHash, randomBytes } from 'node:crypto'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { approvalsClientId, pagesClientId } from '#kernel/contract/caller.ts'

/**
 * The pages on which people act are clients of the authorization server. People sign in for them as for every app, but
 * without a consent, because the person who opens them is the one who acts.
 */

export type PageClient = {
  id: string
  name: string
  /** The path of the page; its cookies are sent to no other. */
  path: string
  cookie: string
}
export const approvalsClient: PageClient = {
  id: approvalsClientId,
  name: 'Approvals',
  path: oauthPaths.approvals,
  cookie: 'portico_approvals',
}
export const accountClient: PageClient = {
  id: pagesClientId,
  name: 'your account',
  path: oauthPaths.account,
  cookie: 'portico_account',
}
const pageClients = [approvalsClient, accountClient]

export const returnPathOf = ({ path }: PageClient): string => `${path}/return`

export const ownClients = (base: string): Record<string, unknown>[] =>
  pageClients.map((client) => ({
    client_id: client.id,
    client_name: client.name,
    redirect_uris: [`${base}${returnPathOf(client)}`],
    // For a client of the type `native` the provider accepts any loopback port, and would send the code to it.
    application_type: 'web',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }))

/** What the browser stores while the person signs in. `view` is the part of the page that it returns to. */
export type SignInFlow = { state: string; verifier: string; view: string }

const base64Url = (bytes: Buffer): string => bytes.toString('base64url')
export const newFlow = (view: string): SignInFlow => ({
  state: base64Url(randomBytes(18)),
  verifier: base64Url(randomBytes(32)),
  view,
})
export const flowText = ({ state, verifier, view }: SignInFlow): string =>
  [state, verifier, base64Url(Buffer.from(view))].join('.')
export function readFlow(text: string | undefined): SignInFlow | undefined {
  const [state, verifier, view = ''] = text?.split('.') ?? []
  return state && verifier
    ? { state, verifier, view: Buffer.from(view, 'base64url').toString('utf8') }
    : undefined
}

/**
 * A sign-in older than `maxAgeSeconds` has to be repeated; if `isRepeated` is true, every earlier sign-in has to be.
 */
export type SignInRequest = { maxAgeSeconds?: number; isRepeated?: boolean }

export function authorizationPath(
  { id, ...client }: PageClient,
  base: string,
  { state, verifier }: SignInFlow,
  { maxAgeSeconds, isRepeated = false }: SignInRequest,
): string {
  const query = new URLSearchParams({
    client_id: id,
    redirect_uri: `${base}${returnPathOf({ id, ...client })}`,
    response_type: 'code',
    scope: 'openid manage propose',
    resource: base,
    ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
    ...(isRepeated && { prompt: 'login consent' }),
    state,
    code_challenge: base64Url(createHash('sha256').update(verifier).digest()),
    code_challenge_method: 'S256',
  })
  return `${oauthPaths.authorize}?${query}`
}

export const tokenForm = (
  client: PageClient,
  { base, code, verifier }: { base: string; code: string; verifier: string },
): string =>
  new URLSearchParams({
    grant_type: 'authorization_code',
    client_id: client.id,
    redirect_uri: `${base}${returnPathOf(client)}`,
    code,
    code_verifier: verifier,
  }).toString()

/** This header marks a request that the process makes to itself; its key never leaves the process. */
export const ownRequestHeader = 'x-portico-own-request'
export const newOwnRequestKey = (): string => base64Url(randomBytes(32))
