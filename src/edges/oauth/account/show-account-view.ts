import type { FastifyRequest } from 'fastify'
import type { PageSession } from '#edges/oauth/sign-in/page-session.ts'
import { passkeyName } from '#edges/oauth/sign-in/passkey-name.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Clock } from '#kernel/clock.ts'
import { keyDaysMax } from '#kernel/contract/access-key.ts'
import { type Caller, isOwnClient } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { accountPage } from './account-pages.ts'
import type { createAccountReader } from './account-reader.ts'
import type { AccountRequest, Message } from './account-request.ts'
import { agentPage, linkPage } from './agent-pages.ts'
import { shownApp, shownKey } from './connected-app-view.ts'

/** The parts of the page that a sign-in may return to. */
export const viewPattern = /^(?:link|agents\/agt_[0-9A-HJKMNP-TV-Z]{26})$/

export type AccountViewsDeps = {
  oauth: Pick<OAuth, 'passkeys' | 'connections' | 'external' | 'creditsPerDay'>
  clock: Clock
  chainName: (chainId: string) => string
  isLocal: boolean
}

export function createAccountViews(
  { oauth: { passkeys, connections, external, creditsPerDay }, clock, chainName, isLocal }: AccountViewsDeps,
  reader: ReturnType<typeof createAccountReader>,
  { answerForms }: Pick<PageSession, 'answerForms'>,
) {
  /** Reads the person's account; if that is refused, the page lacks figures, but trading can still be stopped. */
  const ownOf = async (request: FastifyRequest, caller: Caller | undefined) => {
    if (!caller) return { account: undefined, unread: 'Open the page again to see them.' }
    if (!caller.person?.hasSignedUp) return { account: undefined, unread: undefined }
    try {
      return { account: await reader.own(request), unread: undefined }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return { account: undefined, unread: error.message }
    }
  }
  const showAccount = async (asked: AccountRequest, message: Message = {}): Promise<void> => {
    const { request, reply, session, person, caller, isFresh } = asked
    const connected = await connections.list(person.id)
    const html = accountPage({
      email: person.email,
      ...(await ownOf(request, caller)),
      passkeys: passkeys && {
        list: await passkeys.list(person.id),
        max: passkeys.max,
        isPossible: passkeys.isPossible(),
        suggestedName: passkeyName(request.headers['user-agent']),
        isFresh: isFresh,
      },
      apps: connected.filter(({ clientId, keyEndsAt }) => !isOwnClient(clientId) && !keyEndsAt).map(shownApp),
      keys: external
        ? undefined
        : {
            list: connected.flatMap(shownKey),
            made: message.madeKey,
            daysMax: keyDaysMax,
            isFresh,
            creditsPerDay: creditsPerDay.default,
            creditsPerDayMax: creditsPerDay.max,
          },
      appServer: external?.issuer,
      now: clock.now(),
      chainName,
      isLocal,
      ...message,
    })
    answerForms(reply, session, message.status ?? 200, html)
  }
  const showAgent = async (asked: AccountRequest, agentId: string, message: Message): Promise<void> => {
    const found = await reader.agent(asked.request, agentId)
    if (!found) return showAccount(asked, { status: 404, error: 'This agent is not linked to you.' })
    const { notice, error } = message
    const view = { ...found, agentId, now: clock.now(), chainName, notice, error }
    answerForms(asked.reply, asked.session, message.status ?? 200, agentPage(view))
  }
  const showLink = ({ reply, session, person }: AccountRequest, { form = {}, ...message }: Message): void =>
    answerForms(
      reply,
      session,
      message.status ?? 200,
      linkPage({
        email: person.email,
        code: form.code ?? '',
        name: form.name ?? '',
        notice: message.notice,
        error: message.error,
      }),
    )
  const show = (asked: AccountRequest, view: string, message: Message = {}): void | Promise<void> => {
    if (view === 'link') return showLink(asked, message)
    if (viewPattern.test(view)) return showAgent(asked, view.slice('agents/'.length), message)
    return showAccount(asked, message)
  }

  return { showAccount, show }
}
