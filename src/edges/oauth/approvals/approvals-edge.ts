import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { isPressed } from '#edges/oauth/provider/browser-request-checks.ts'
import { approvalsClient, returnPathOf } from '#edges/oauth/provider/page-clients.ts'
import { findSession, type PageExchange, type SignedInSession } from '#edges/oauth/sign-in/browser-session.ts'
import {
  type AnswerPage,
  createPageSession,
  orSignIn,
  type PageSession,
  type PageSessionDeps,
  type ReadForm,
  redirect,
} from '#edges/oauth/sign-in/page-session.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Caller, isOwnClient } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import {
  approvalsErrorPage,
  approvalsPage,
  isNotice,
  type Notice,
  type ShownApproval,
} from './approvals-pages.ts'

export type ApprovalsEdgeDeps = PageSessionDeps & {
  clock: Clock
  freshSignInSeconds: number
  authenticate: (authorization: string | undefined) => Promise<Caller>
  exchangeOf: (request: FastifyRequest, reply: FastifyReply) => Promise<PageExchange>
  clientName: (clientId: string) => Promise<string | undefined>
}

type ListedApproval = Omit<ShownApproval, 'intent'> & {
  intent: Omit<ShownApproval['intent'], 'app' | 'isOwnPage' | 'agentName' | 'recipientLabel'> & {
    agent_id: string
    client_id: string | null
  }
}
type Listed = { approvals: ListedApproval[]; total: number }

export function createApprovalsEdge(deps: ApprovalsEdgeDeps, answerPage: AnswerPage, readForm: ReadForm) {
  const { clock } = deps
  const session = createPageSession(approvalsClient, deps)
  const list = session.operation('approvals_list')
  const approve = session.operation('approvals_approve')
  const decline = session.operation('approvals_decline')
  const namesFor = nameReader(deps, session)

  /**
   * Sends the browser to the sign-in. A sign-in older than half of the age that an approval allows is repeated, so that
   * the other half is left for the decision. The browser then returns to the approval `view`.
   */
  const signIn = (reply: FastifyReply, { isRefused = false, view = '' } = {}): void =>
    session.signIn(
      reply,
      { maxAgeSeconds: Math.floor(deps.freshSignInSeconds / 2), isRepeated: isRefused },
      view,
    )

  /** Returns the person whose token the page has, or undefined if that person is not signed in to the browser now. */
  const personOf = async (
    request: FastifyRequest,
    signedIn: SignedInSession | undefined,
  ): Promise<Caller | undefined> => {
    if (!session.hasToken(request)) return undefined
    const caller = await deps.authenticate(session.authorizationOf(request))
    return caller.userId === signedIn?.personId ? caller : undefined
  }

  const show = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const view = approvalOf(request)
    const signedIn = await findSession(await deps.exchangeOf(request, reply))
    const caller = await personOf(request, signedIn)
    if (!signedIn || !caller) return signIn(reply, { view })
    const { body } = await session.call(list, request, {})
    const { approvals, total } = body as Listed
    const named = view === '' ? approvals : approvals.filter(({ approval_id }) => approval_id === view)
    const { notice } = request.query as { notice?: unknown }
    const html = approvalsPage({
      email: caller.person?.email ?? '',
      approvals: await namesFor(request, named),
      total: view === '' ? total : named.length,
      isNamed: view !== '',
      now: clock.now(),
      notice: isNotice(notice) ? notice : undefined,
    })
    session.answerForms(reply, signedIn, 200, html)
  }

  const decide = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { approval_id, decision } = request.params as { approval_id: string; decision: string }
    const form = await readForm(request)
    const signedIn = await findSession(await deps.exchangeOf(request, reply))
    session.assertOwnForm(request, form, signedIn)
    const isApproval = decision === 'approve'
    if (isApproval && !isPressed(request.raw))
      throw new Fault('origin_not_allowed', 'A person presses this button.')
    if (!(await personOf(request, signedIn))) return signIn(reply, { view: approval_id })
    const fields = { approval_id, ...(isApproval && { intent_sha256: form.intent_sha256 ?? '' }) }
    const notice: Notice = await session.call(isApproval ? approve : decline, request, fields).then(
      () => (isApproval ? 'approved' : 'declined'),
      (error: unknown) => {
        if (error instanceof Fault && ['conflict', 'not_found'].includes(error.code)) return noticeOf(error)
        throw error
      },
    )
    redirect(reply, `${oauthPaths.approvals}?notice=${notice}`)
  }

  const answerSignedIn = orSignIn(answerPage, {
    isReturn: session.isReturn,
    signIn: (request, reply, code) =>
      signIn(reply, { isRefused: code === 'step_up_required', view: approvalOf(request) }),
    errorPage: approvalsErrorPage,
    codes: ['invalid_token', 'unauthorized', 'step_up_required'],
  })

  return (scope: FastifyInstance): void => {
    const options = { exposeHeadRoute: false }
    for (const path of [oauthPaths.approvals, `${oauthPaths.approvals}/:approval_id(${idPattern})`])
      scope.get(path, options, (request, reply) => answerSignedIn(request, reply, () => show(request, reply)))
    scope.get(returnPathOf(approvalsClient), options, (request, reply) =>
      answerSignedIn(request, reply, async () => {
        const view = await session.receive(request, reply, scope)
        redirect(reply, view === '' ? oauthPaths.approvals : `${oauthPaths.approvals}/${view}`)
      }),
    )
    scope.post(
      `${oauthPaths.approvals}/:approval_id(${idPattern})/:decision(^approve|decline$)`,
      (request, reply) => answerSignedIn(request, reply, () => decide(request, reply)),
    )
  }
}

const idPattern = '^[0-9a-f-]{36}$'
const approvalOf = ({ params }: FastifyRequest): string =>
  (params as { approval_id?: string } | undefined)?.approval_id ?? ''

/**
 * Returns the notice for a refused decision. If the agent's link is too new or is contested, the request can still be
 * approved later.
 */
function noticeOf({ extras }: Fault): Notice {
  if (extras.status === 'young_link') return 'young'
  return extras.status === 'contested_link' ? 'contested' : 'late'
}

type Agents = { agents: { agent_id: string; name: string | null }[] }
type Recipients = { recipients: { chain_id: string; address: string; label: string }[] }

/** Reads the names that the person knows: of apps, linked agents and recipients. */
function nameReader({ clientName }: ApprovalsEdgeDeps, session: PageSession) {
  const agentList = session.operation('agents_list')
  const recipientList = session.operation('recipients_list')

  return async (request: FastifyRequest, approvals: readonly ListedApproval[]): Promise<ShownApproval[]> => {
    if (approvals.length === 0) return []
    const { agents } = (await session.call(agentList, request, {})).body as Agents
    const nameOf = (agentId: string) => agents.find((each) => each.agent_id === agentId)
    /** Returns the linked agent that an approval concerns, or undefined for the account of the person itself. */
    const ownerOf = ({ intent }: ListedApproval) => nameOf(intent.agent_id)?.agent_id
    const owners = [...new Set(approvals.filter(({ intent }) => intent.recipient !== null).map(ownerOf))]
    const labels = new Map<string, string>()
    await Promise.all(
      owners.map(async (owner) => {
        const fields = owner === undefined ? {} : { for_agent: owner }
        const { recipients } = (await session.call(recipientList, request, fields)).body as Recipients
        for (const each of recipients)
          labels.set(`${owner ?? ''} ${each.chain_id} ${each.address}`, each.label)
      }),
    )
    const clientIds = [...new Set(approvals.map(({ intent }) => intent.client_id))].filter(
      (id) => id !== null,
    )
    const apps = new Map(
      await Promise.all(clientIds.map(async (id) => [id, (await clientName(id)) ?? id] as const)),
    )
    return approvals.map((each) => {
      const { intent } = each
      const { client_id: clientId, recipient, agent_id: agentId } = intent
      const label = labels.get(`${ownerOf(each) ?? ''} ${intent.chain_id} ${recipient}`)
      return {
        ...each,
        intent: {
          ...intent,
          app: clientId === null ? null : (apps.get(clientId) ?? clientId),
          isOwnPage: clientId !== null && isOwnClient(clientId),
          agentName: nameOf(agentId)?.name ?? null,
          recipientLabel: label ?? null,
        },
      }
    })
  }
}
