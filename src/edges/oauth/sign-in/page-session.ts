import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readCookie, setCookie } from '#edges/oauth/cookies.ts'
import { isProven, isSame, withProof } from '#edges/oauth/csrf-token.ts'
import { hasPasskeyScript, pageHeaders } from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { isRefusedOrigin } from '#edges/oauth/provider/browser-request-checks.ts'
import {
  authorizationPath,
  flowText,
  newFlow,
  ownRequestHeader,
  type PageClient,
  readFlow,
  returnPathOf,
  type SignInRequest,
  tokenForm,
} from '#edges/oauth/provider/page-clients.ts'
import type { Form } from '#edges/oauth/provider/request-bodies.ts'
import type { InvocableOperation, Invocation } from '#invoke/invocation.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { SignedInSession } from './browser-session.ts'

/**
 * This is the session of a page that acts for a person in the browser. It calls the same operations as every other
 * client, with an access token that the browser stores in a cookie of this page.
 */

export type PageSessionDeps = {
  invocation: Pick<Invocation, 'prepare'>
  operations: readonly Operation[]
  baseUrl: () => string
  ownRequestKey: string
}
/**
 * Runs the handler of a page within the rate limits of the client's address, and shows its faults on the error page of
 * the sign-in.
 */
export type AnswerPage = (
  request: FastifyRequest,
  reply: FastifyReply,
  run: () => Promise<void>,
) => Promise<void>
export type ReadForm = (request: FastifyRequest) => Promise<Form>

const tokenSeconds = 600
const flowSeconds = 900

export const answer = ({ raw }: FastifyReply, status: number, html: string): void => {
  raw.writeHead(status, pageHeaders({ hasScript: hasPasskeyScript(html) })).end(html)
}
export const redirect = ({ raw }: FastifyReply, location: string): void => {
  raw.writeHead(303, { location, 'cache-control': 'no-store', 'content-length': '0' }).end()
}

type SignInAnswer = {
  isReturn(request: FastifyRequest): boolean
  signIn(request: FastifyRequest, reply: FastifyReply, code: string): void
  errorPage(sentence: string, code: string): string
  codes: readonly string[]
}
/** A fault that a new sign-in resolves sends the browser to the sign-in; any other fault is shown. */
export const orSignIn =
  (answerPage: AnswerPage, { isReturn, signIn, errorPage, codes }: SignInAnswer): AnswerPage =>
  (request, reply, run) =>
    answerPage(request, reply, () =>
      run().catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error
        if (codes.includes(error.code) && !isReturn(request)) return signIn(request, reply, error.code)
        answer(reply, error.status, errorPage(error.message, error.code))
      }),
    )

export type PageSession = ReturnType<typeof createPageSession>

export function createPageSession(client: PageClient, deps: PageSessionDeps) {
  const { baseUrl } = deps
  const flowCookie = `${client.cookie}_flow`
  const store = ({ raw }: FastifyReply, name: string, value: string, seconds: number): void =>
    setCookie(raw, { name, value, path: client.path, seconds, baseUrl: baseUrl() })
  const tokenOf = (request: FastifyRequest) => readCookie(request.raw, client.cookie)
  const authorizationOf = (request: FastifyRequest): string | undefined => {
    const token = tokenOf(request)
    return token === undefined ? undefined : `Bearer ${token}`
  }

  /** Exchanges the code at the token endpoint, which accepts the codes of pages only from this process. */
  const redeem = async (request: FastifyRequest, server: FastifyInstance) => {
    const { code, state } = request.query as { code?: unknown; state?: unknown }
    const flow = readFlow(readCookie(request.raw, flowCookie))
    if (typeof code !== 'string' || typeof state !== 'string' || !flow || !isSame(state, flow.state))
      throw new Fault(
        'bad_request',
        'This sign-in was not started here, or it has ended. Open the page again.',
      )
    const { body } = await server.inject({
      method: 'POST',
      url: oauthPaths.token,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        [ownRequestHeader]: deps.ownRequestKey,
      },
      payload: tokenForm(client, { base: baseUrl(), code, verifier: flow.verifier }),
      remoteAddress: request.ip,
    })
    const { access_token: token } = JSON.parse(body) as { access_token?: string }
    if (token === undefined)
      throw new Fault('invalid_token', 'The sign-in has ended meanwhile. Open the page again.')
    return { token, view: flow.view }
  }

  return {
    client,
    authorizationOf,
    hasToken: (request: FastifyRequest): boolean => tokenOf(request) !== undefined,

    operation(name: string): InvocableOperation {
      const found = deps.operations.find((each) => each.name === name)
      if (!found) throw new Error(`there is no operation ${name}`)
      return deps.invocation.prepare(found)
    },
    async call(
      invocable: InvocableOperation,
      request: FastifyRequest,
      fields: Record<string, unknown>,
    ): Promise<{ body: unknown; caller: Caller | null }> {
      const admitted = await invocable.admit({
        authorization: authorizationOf(request),
        address: request.ip,
      })
      if (admitted.refusal) throw admitted.refusal
      const { input } = invocable.readFlatInput(fields)
      const facts = { id: request.id, address: request.ip, signal: AbortSignal.timeout(30_000) }
      const outcome = await invocable.call(admitted, input, { wait: false, timeoutMs: 0 }, facts)
      return { body: 'body' in outcome ? outcome.body : undefined, caller: admitted.caller }
    },

    signIn(reply: FastifyReply, wanted: SignInRequest, view = ''): void {
      const flow = newFlow(view)
      store(reply, flowCookie, flowText(flow), flowSeconds)
      redirect(reply, `${baseUrl()}${authorizationPath(client, baseUrl(), flow, wanted)}`)
    },
    /** Called when the browser returns with a code; resolves with the view that the sign-in was for. */
    async receive(request: FastifyRequest, reply: FastifyReply, server: FastifyInstance): Promise<string> {
      const { token, view } = await redeem(request, server)
      store(reply, flowCookie, '', 0)
      store(reply, client.cookie, token, tokenSeconds)
      return view
    },
    isReturn: ({ url }: FastifyRequest): boolean => url.startsWith(returnPathOf(client)),
    forget(reply: FastifyReply): void {
      store(reply, client.cookie, '', 0)
    },

    answerForms(reply: FastifyReply, session: SignedInSession, status: number, html: string): void {
      answer(reply, status, withProof(html, session))
    },
    assertOwnForm(request: FastifyRequest, form: Form, session: SignedInSession | undefined): void {
      if (isRefusedOrigin(request.raw, baseUrl()) || !isProven(form, session))
        throw new Fault('origin_not_allowed', 'The form was sent by another page. Open the page again.')
    },
  }
}
