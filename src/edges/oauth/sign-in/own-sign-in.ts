import type { Interaction } from 'oidc-provider'
import { readCookie, setCookie } from '#edges/oauth/cookies.ts'
import {
  codePage,
  createPasskeyPage,
  emailCodePage,
  type PageContext,
  passkeySignUpPage,
  resetPage,
  signInPage,
  signUpPage,
} from '#edges/oauth/pages.ts'
import { oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import type { Form } from '#edges/oauth/provider/request-bodies.ts'
import {
  clientOf,
  type Entry,
  type Exchange,
  formSource,
  refusals,
  type SignInMethod,
  type SignInStep,
  send,
  signedIn,
} from '#edges/oauth/provider/sign-in-request.ts'
import type { CodeRequest, Person, Refusal } from '#features/oauth/email-sign-in.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Clock } from '#kernel/clock.ts'
import { passkeySteps } from './passkey-sign-in.ts'

/** People sign in by password or passkey; codes by email serve new accounts and new passwords. */

const pageOf = {
  'sign-in': signInPage,
  'sign-up': signUpPage,
  'passkey-sign-up': passkeySignUpPage,
  'passkey-create': createPasskeyPage,
  reset: resetPage,
  'email-code': emailCodePage,
  code: codePage,
}
type View = keyof typeof pageOf
type FormContext = Pick<PageContext, 'email' | 'error'> & { status?: number }

const openViews: readonly string[] = ['sign-up', 'passkey-sign-up', 'reset', 'email-code']

const statusOf: Partial<Record<Refusal, number>> = {
  limited: 429,
  crowded: 429,
  overloaded: 503,
  notSent: 503,
}
const refusedForm = (why: Refusal, email: string): FormContext => ({
  email,
  error: refusals[why],
  status: statusOf[why] ?? 422,
})

const cookieName = 'portico_browser'
const cookieSeconds = 30 * 86_400
const originOf = (exchange: Exchange) => ({
  address: exchange.address,
  browser: readCookie(exchange.request, cookieName),
})

type OwnSignInDeps = Pick<OAuth, 'people' | 'knownBrowsers' | 'passkeys'> & {
  baseUrl: () => string
  clock: Clock
}

const requestOf = (view: View, { email = '', password = '' }: Form): CodeRequest => {
  if (view === 'passkey-sign-up') return { email, isForPasskey: true }
  return view === 'email-code' ? { email } : { email, password }
}

export function createOwnSignIn({
  people,
  knownBrowsers,
  passkeys,
  baseUrl,
  clock,
}: OwnSignInDeps): SignInMethod {
  const hasPasskeys = () => passkeys?.isPossible() ?? false

  /** Marks the browser as known to the person, so that failed guesses of others no longer limit sign-ins in it. */
  const remember = async ({ response }: Exchange, personId: string): Promise<void> => {
    const value = await knownBrowsers.tokenFor(personId)
    const path = oauthPaths.interaction
    setCookie(response, { name: cookieName, value, path, seconds: cookieSeconds, baseUrl: baseUrl() })
  }

  const showForm = async (
    exchange: Exchange,
    interaction: Interaction,
    view: View,
    { status = 200, ...context }: FormContext = {},
  ): Promise<void> => {
    const { name } = await clientOf(exchange, interaction)
    const html = pageOf[view]({ uid: exchange.uid, client: name, hasPasskeys: hasPasskeys(), ...context })
    send(exchange, status, html, formSource(interaction.params.redirect_uri))
  }

  const showRefusal = (
    exchange: Exchange,
    interaction: Interaction,
    view: View,
    { why, email = '' }: { why: Refusal; email?: string },
  ) => showForm(exchange, interaction, view, refusedForm(why, email))

  const begin =
    (view: View): SignInStep =>
    async (exchange, interaction, form) => {
      const begun = await people.begin(requestOf(view, form), exchange.uid, originOf(exchange))
      if (!begun.ok) return showRefusal(exchange, interaction, view, { ...begun, email: form.email ?? '' })
      await showForm(exchange, interaction, 'code', { email: begun.value.email })
    }
  const enter = async (
    exchange: Exchange,
    interaction: Interaction,
    person: Person,
    entry: Entry,
  ): Promise<void> => {
    await remember(exchange, person.id)
    await signedIn(exchange, person, { ...entry, interaction })
  }
  const show = (exchange: Exchange, interaction: Interaction, view = '') =>
    showForm(exchange, interaction, openViews.includes(view) ? (view as View) : 'sign-in')

  return {
    show,
    steps: {
      async 'sign-in'(exchange, interaction, { email = '', password = '' }) {
        const person = await people.signIn({ email, password }, originOf(exchange))
        if (!person.ok) return showRefusal(exchange, interaction, 'sign-in', { ...person, email })
        await enter(exchange, interaction, person.value, { amr: ['pwd'] })
      },
      'sign-up': begin('sign-up'),
      reset: begin('reset'),
      'email-code': begin('email-code'),
      async code(exchange, interaction, { code = '', email = '' }) {
        const confirmed = await people.confirm(exchange.uid, code.trim(), originOf(exchange))
        if (!confirmed.ok) return showRefusal(exchange, interaction, 'code', { ...confirmed, email })
        const { value } = confirmed
        // A new password has just ended the earlier sessions, so this session is entered at the present moment.
        if ('person' in value)
          return enter(exchange, interaction, value.person, { amr: ['otp'], enteredAt: clock.now() })
        await passkeys?.holdVerifiedEmail(exchange.uid, value.verifiedEmail)
        await showForm(exchange, interaction, 'passkey-create', { email: value.verifiedEmail })
      },
      ...(passkeys && passkeySteps({ passkeys, begin: begin('passkey-sign-up'), showRefusal, enter })),
    },
  }
}
