import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { chosenCredits } from '#edges/oauth/chosen-credits.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { isRefusedOrigin } from '#edges/oauth/provider/browser-request-checks.ts'
import { accountClient, approvalsClient, returnPathOf } from '#edges/oauth/provider/page-clients.ts'
import { findSession, type PageExchange, signOut } from '#edges/oauth/sign-in/browser-session.ts'
import {
  type AnswerPage,
  answer,
  createPageSession,
  orSignIn,
  type PageSession,
  type PageSessionDeps,
  type ReadForm,
  redirect,
} from '#edges/oauth/sign-in/page-session.ts'
import type { CreatePersonKey } from '#features/auth/access-keys.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { createAccountActs, isNotice, notices } from './account-acts.ts'
import { accountKeys } from './account-keys.ts'
import { accountErrorPage, disconnectedText, signedOutPage } from './account-pages.ts'
import { accountPasskeys } from './account-passkeys.ts'
import { createAccountReader } from './account-reader.ts'
import type { AccountRequest, AccountStep } from './account-request.ts'
import { type AccountViewsDeps, createAccountViews, viewPattern } from './show-account-view.ts'

export type AccountEdgeDeps = PageSessionDeps &
  AccountViewsDeps & {
    oauth: Pick<OAuth, 'people' | 'records' | 'freshSignInSeconds'>
    authenticate: (authorization: string | undefined) => Promise<Caller>
    exchangeOf: (request: FastifyRequest, reply: FastifyReply) => Promise<PageExchange>
    createPersonKey: CreatePersonKey
  }
/**
 * After one of these faults the access token of the page is no longer valid, but the session of the browser may still
 * be.
 */
const closedAccess: readonly string[] = ['invalid_token', 'unauthorized', 'suspended']

const againMark = '?again'
/**
 * Marks the view to return to after a sign-in that an act needed first. The view then says that nothing was changed
 * yet.
 */
const repeatedView = (view: string): string => `${view}${againMark}`
const pathOf = (marked: string): string => {
  const view = marked.replace(againMark, '')
  const path = viewPattern.test(view) ? `${oauthPaths.account}/${view}` : oauthPaths.account
  return view === marked ? path : `${path}?notice=again`
}

export function createAccountEdge(deps: AccountEdgeDeps, answerPage: AnswerPage, readForm: ReadForm) {
  const { oauth, clock, authenticate, exchangeOf, baseUrl, createPersonKey } = deps
  const { people, passkeys, records, connections, external, freshSignInSeconds, creditsPerDay } = oauth
  const creditsOf = chosenCredits(creditsPerDay)
  const pages = createPageSession(accountClient, deps)
  const approvals = createPageSession(approvalsClient, deps)
  const reader = createAccountReader(pages)
  const acts = createAccountActs(pages)
  const { showAccount, show } = createAccountViews(deps, reader, pages)

  const accessOf = async (request: FastifyRequest): Promise<{ caller?: Caller; isSuspended?: boolean }> => {
    if (!pages.hasToken(request)) return {}
    try {
      return { caller: await authenticate(pages.authorizationOf(request)) }
    } catch (error) {
      if (!(error instanceof Fault && closedAccess.includes(error.code))) throw error
      return { isSuspended: error.code === 'suspended' }
    }
  }

  /**
   * Returns the request of a signed-in person, or undefined if the browser was sent to the sign-in. An act needs a
   * token, which a suspended person lacks.
   */
  const open = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { view, needs }: { view: string; needs: 'session' | 'token' | 'token unless suspended' },
  ): Promise<AccountRequest | undefined> => {
    const exchange = await exchangeOf(request, reply)
    const session = await findSession(exchange)
    const person = session && (await people.find(session.personId))
    const access = person && (await accessOf(request))
    // Another person may have signed in to this browser since the token was issued.
    const caller = access?.caller?.userId === person?.id ? access?.caller : undefined
    const isEnough =
      caller !== undefined ||
      needs === 'session' ||
      (needs === 'token unless suspended' && access?.isSuspended === true)
    if (!session || !person || !isEnough) return void pages.signIn(reply, {}, view)
    const ageMs = clock.now().getTime() - session.signedInAtMs
    return {
      request,
      reply,
      exchange,
      session,
      person,
      caller,
      isFresh: ageMs <= freshSignInSeconds * 1_000,
    }
  }

  const leave = (reply: FastifyReply, from: 'browser' | 'everywhere'): void => {
    pages.forget(reply)
    approvals.forget(reply)
    answer(reply, 200, signedOutPage(from, external?.issuer))
  }
  const ownSteps: Record<string, AccountStep> = {
    ...(passkeys && accountPasskeys(passkeys, showAccount)),
    ...(!external && accountKeys({ createPersonKey, endApp: connections.end, creditsOf }, showAccount)),
    async disconnect(asked, { client_id: clientId = '' }) {
      await connections.end(asked.person.id, clientId)
      await showAccount(asked, { notice: disconnectedText(external?.issuer) })
    },
    'sign-in': ({ reply }, { view = '' }) => pages.signIn(reply, { isRepeated: true }, view),
    async 'sign-out'({ reply, session }) {
      await signOut(session, connections)
      leave(reply, 'browser')
    },
    async 'sign-out-everywhere'({ reply, person }) {
      await records.revokeAccount(person.id)
      leave(reply, 'everywhere')
    },
  }

  const submit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { step } = request.params as { step: string }
    const form = await readForm(request)
    if (isRefusedOrigin(request.raw, baseUrl()))
      throw new Fault('origin_not_allowed', 'The form was sent by another site.')
    const act = acts.find(step)
    const run = Object.hasOwn(ownSteps, step) ? ownSteps[step] : undefined
    if (!act && !run) throw new Fault('not_found', 'There is no such page.')
    const view = act ? act.viewOf(form) : ''
    const asked = await open(request, reply, { view: repeatedView(view), needs: act ? 'token' : 'session' })
    if (!asked) return
    // A request for passkey options needs no form token: it changes nothing, and the options are useless to a script
    // that has no passkey of the person.
    if (!step.endsWith('-options')) pages.assertOwnForm(request, form, asked.session)
    if (run) return run(asked, form)
    const done = await act!.run(request, form)
    if ('approvalId' in done) return redirect(reply, `${oauthPaths.approvals}/${done.approvalId}`)
    if ('notice' in done) return redirect(reply, `${pathOf(done.view)}?notice=${done.notice}`)
    if (done.asksForSignIn) return pages.signIn(reply, { isRepeated: true }, repeatedView(view))
    await show(asked, view, { status: done.status, error: done.error, form })
  }

  const openView = async (request: FastifyRequest, reply: FastifyReply, view: string): Promise<void> => {
    const asked = await open(request, reply, { view, needs: 'token unless suspended' })
    const { notice } = request.query as { notice?: unknown }
    if (asked) await show(asked, view, isNotice(notice) ? { notice: notices[notice] } : {})
  }

  const answerSignedIn = orSignIn(answerPage, {
    isReturn: pages.isReturn,
    signIn: (_request, reply) => pages.signIn(reply, {}),
    errorPage: accountErrorPage,
    codes: ['invalid_token', 'unauthorized'],
  })

  return (scope: FastifyInstance) => addRoutes(scope, { pages, answerSignedIn, openView, submit })
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>
type Handlers = {
  pages: Pick<PageSession, 'receive'>
  answerSignedIn: AnswerPage
  openView(request: FastifyRequest, reply: FastifyReply, view: string): Promise<void>
  submit: Handler
}
function addRoutes(scope: FastifyInstance, { pages, answerSignedIn, openView, submit }: Handlers): void {
  const options = { exposeHeadRoute: false }
  const get = (path: string, viewOf: (request: FastifyRequest) => string) =>
    scope.get(path, options, (request, reply) =>
      answerSignedIn(request, reply, () => openView(request, reply, viewOf(request))),
    )
  get(oauthPaths.account, () => '')
  get(oauthPaths.link, () => 'link')
  get(
    `${oauthPaths.account}/agents/:agent_id`,
    ({ params }) => `agents/${(params as { agent_id: string }).agent_id}`,
  )
  scope.get(returnPathOf(accountClient), options, (request, reply) =>
    answerSignedIn(request, reply, async () => {
      const { error } = request.query as { error?: unknown }
      if (error !== undefined) throw new Fault('bad_request', 'You were not signed in.')
      redirect(reply, pathOf(await pages.receive(request, reply, scope)))
    }),
  )
  scope.post(`${oauthPaths.account}/:step`, (request, reply) =>
    answerSignedIn(request, reply, () => submit(request, reply)),
  )
}
