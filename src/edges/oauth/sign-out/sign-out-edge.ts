import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Client } from 'oidc-provider'
import { hidden } from '#edges/oauth/account/account-html.ts'
import { signedOutPage } from '#edges/oauth/account/account-pages.ts'
import { isProven, withProof } from '#edges/oauth/csrf-token.ts'
import { errorPage, escapeHtml, page, pageHeaders, shownName } from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { isRefusedOrigin } from '#edges/oauth/provider/browser-request-checks.ts'
import type { Form } from '#edges/oauth/provider/request-bodies.ts'
import { formSource } from '#edges/oauth/provider/sign-in-request.ts'
import { findSession, type PageExchange, signOut } from '#edges/oauth/sign-in/browser-session.ts'
import { type AnswerPage, answer, type ReadForm, redirect } from '#edges/oauth/sign-in/page-session.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * OpenID Connect RP-Initiated Logout: an app that has signed its user out sends the browser here, and the person decides
 * whether this browser is signed out of the gateway as well. The provider would store a session for each stranger that
 * opens its page, so the page is written here.
 */

type SignOutDeps = {
  baseUrl: () => string
  oauth: Pick<OAuth, 'connections' | 'external'>
  exchangeOf: (request: FastifyRequest, reply: FastifyReply) => Promise<PageExchange>
}

/** The app that an id token was issued to. Nothing is granted by it, so its signature is not checked. */
function audienceOf(idToken: string): string {
  try {
    const claims: unknown = JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString())
    return isRecord(claims) && typeof claims.aud === 'string' ? claims.aud : ''
  } catch {
    return ''
  }
}

type Asked = {
  clientId: string
  app: Client | undefined
  to: string
  back: string | undefined
  state: string
}

/** Reads who asks, and where the browser goes afterwards: to no address that the app has not registered. */
async function readRequest({ provider }: PageExchange, fields: Form): Promise<Asked> {
  const { id_token_hint = '', client_id = '', post_logout_redirect_uri: to = '', state = '' } = fields
  const hinted = id_token_hint === '' ? '' : audienceOf(id_token_hint)
  if (hinted !== '' && client_id !== '' && hinted !== client_id)
    throw new Fault('bad_request', 'The id token was issued to another app.')
  const clientId = client_id || hinted
  const app = clientId === '' ? undefined : await provider.Client.find(clientId).catch(() => undefined)
  if (to !== '' && !app?.postLogoutRedirectUriAllowed(to))
    throw new Fault('bad_request', 'The app did not register the address to which it wants you to return.')
  const url = to === '' ? undefined : new URL(to)
  if (state !== '') url?.searchParams.set('state', state)
  return { clientId, app, to, back: url?.href, state }
}

function askPage({ clientId, app, to, state }: Asked): string {
  const name = app && (shownName(app.clientName ?? '') || 'An app without a name')
  const why = name === undefined ? 'An app asks this.' : `${name} asks this.`
  const fields = Object.entries({ client_id: clientId, post_logout_redirect_uri: to, state })
    .map(([field, value]) => (value === '' ? '' : hidden(field, value)))
    .join('')
  return page(
    'Sign out',
    `<h1>Sign out of this browser?</h1><p class="soft">${escapeHtml(why)} Connected apps keep their access until you disconnect them.</p>
<form method="post" action="${oauthPaths.signOut}/confirm">${fields}<button class="main" name="sign_out" value="yes">Sign out</button><button class="quiet">Stay signed in</button></form>
<p class="links"><a href="${oauthPaths.account}">Manage your account</a></p>`,
  )
}

export function createSignOutEdge(deps: SignOutDeps, answerPage: AnswerPage, readForm: ReadForm) {
  const { connections, external } = deps.oauth
  const leave = (reply: FastifyReply, { back }: Asked): void => {
    if (back === undefined) answer(reply, 200, signedOutPage('browser', external?.issuer))
    else redirect(reply, back)
  }
  const ask = async (request: FastifyRequest, reply: FastifyReply, fields: Form): Promise<void> => {
    const exchange = await deps.exchangeOf(request, reply)
    const asked = await readRequest(exchange, fields)
    const session = await findSession(exchange)
    if (!session) return leave(reply, asked)
    const headers = pageHeaders({ form: formSource(asked.back) })
    reply.raw.writeHead(200, headers).end(withProof(askPage(asked), session))
  }
  const decide = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const form = await readForm(request)
    const exchange = await deps.exchangeOf(request, reply)
    const asked = await readRequest(exchange, form)
    const session = await findSession(exchange)
    if (!session) return leave(reply, asked)
    if (isRefusedOrigin(request.raw, deps.baseUrl()) || !isProven(form, session))
      throw new Fault('origin_not_allowed', 'The form was sent by another page. Open the page again.')
    if (form.sign_out !== 'yes') return redirect(reply, asked.back ?? oauthPaths.account)
    await signOut(session, connections)
    leave(reply, asked)
  }

  /** Shows a refusal as that of a page on which nobody signs in. */
  const answerSignOut: AnswerPage = (request, reply, run) =>
    answerPage(request, reply, () =>
      run().catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error
        answer(reply, error.status, errorPage(error.message, error.code, { isSignIn: false }))
      }),
    )

  return (scope: FastifyInstance): void => {
    scope.get(oauthPaths.signOut, { exposeHeadRoute: false }, (request, reply) =>
      answerSignOut(request, reply, () => ask(request, reply, queryOf(request))),
    )
    scope.post(oauthPaths.signOut, (request, reply) =>
      answerSignOut(request, reply, async () => ask(request, reply, await readForm(request))),
    )
    scope.post(`${oauthPaths.signOut}/confirm`, (request, reply) =>
      answerSignOut(request, reply, () => decide(request, reply)),
    )
  }
}

const queryOf = ({ raw }: FastifyRequest): Form =>
  Object.fromEntries(new URLSearchParams((raw.url ?? '').split('?').slice(1).join('?')))
