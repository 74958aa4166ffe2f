import type { Interaction } from 'oidc-provider'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Outcome, Person, Refusal } from '#features/oauth/people.ts'
import {
  clientOf,
  type Exchange,
  formSource,
  refusals,
  type SignInMethod,
  type SignInStep,
  send,
  signedIn,
} from './exchange.ts'
import { codePage, emailCodePage, type PageContext, resetPage, signInPage, signUpPage } from './pages.ts'
import { oauthPaths } from './paths.ts'

/** Sign-in with an account of this gateway: password, and codes by email for new accounts and new passwords. */

const pageOf = {
  'sign-in': signInPage,
  'sign-up': signUpPage,
  reset: resetPage,
  'email-code': emailCodePage,
  code: codePage,
}
type View = keyof typeof pageOf
type FormContext = Pick<PageContext, 'email' | 'error'> & { status?: number }

/** The views that an address may name. */
const openViews: readonly string[] = ['sign-up', 'reset', 'email-code']

const statusOf: Partial<Record<Refusal, number>> = { limited: 429, crowded: 429, notSent: 503 }
const refusedForm = (why: Refusal, email: string): FormContext => ({
  email,
  error: refusals[why],
  status: statusOf[why] ?? 422,
})

const cookieName = 'portico_browser'
const cookieSeconds = 30 * 86_400
const browserOf = ({ request }: Exchange): string | undefined =>
  new RegExp(`(?:^|; )${cookieName}=([\\w.-]{1,128})(?:;|$)`).exec(request.headers.cookie ?? '')?.[1]
const originOf = (exchange: Exchange) => ({ address: exchange.address, browser: browserOf(exchange) })

type OwnSignInDeps = Pick<OAuth, 'people' | 'knownBrowsers'> & { baseUrl: () => string }

export function ownSignIn({ people, knownBrowsers, baseUrl }: OwnSignInDeps): SignInMethod {
  /** Guesses of others do not limit this person in this browser any more. */
  const remember = async ({ response }: Exchange, personId: string): Promise<void> => {
    const attributes = [
      `Path=${oauthPaths.interaction}`,
      `Max-Age=${cookieSeconds}`,
      'HttpOnly',
      'SameSite=Lax',
      ...(baseUrl().startsWith('https:') ? ['Secure'] : []),
    ]
    const token = await knownBrowsers.tokenFor(personId)
    response.appendHeader('set-cookie', [`${cookieName}=${token}`, ...attributes].join('; '))
  }

  const showForm = async (
    exchange: Exchange,
    interaction: Interaction,
    view: View,
    { status = 200, ...context }: FormContext = {},
  ): Promise<void> => {
    const { name } = await clientOf(exchange, interaction)
    const html = pageOf[view]({ uid: exchange.uid, client: name, ...context })
    send(exchange, status, html, formSource(interaction.params.redirect_uri))
  }

  const begin =
    (view: View): SignInStep =>
    async (exchange, interaction, { email = '', password = '' }) => {
      const request = view === 'email-code' ? { email } : { email, password }
      const begun = await people.begin(request, exchange.uid, originOf(exchange))
      if (!begun.ok) return showForm(exchange, interaction, view, refusedForm(begun.why, email))
      await showForm(exchange, interaction, 'code', { email: begun.value.email })
    }
  const enter = async (
    exchange: Exchange,
    interaction: Interaction,
    view: View,
    { person, email }: { person: Outcome<Person>; email: string },
  ): Promise<void> => {
    if (person.ok) {
      await remember(exchange, person.value.id)
      return signedIn(exchange, person.value, [view === 'code' ? 'otp' : 'pwd'])
    }
    await showForm(exchange, interaction, view, refusedForm(person.why, email))
  }

  return {
    show: (exchange, interaction, view = '') =>
      showForm(exchange, interaction, openViews.includes(view) ? (view as View) : 'sign-in'),
    steps: {
      async 'sign-in'(exchange, interaction, { email = '', password = '' }) {
        const person = await people.signIn({ email, password }, originOf(exchange))
        await enter(exchange, interaction, 'sign-in', { person, email })
      },
      'sign-up': begin('sign-up'),
      reset: begin('reset'),
      'email-code': begin('email-code'),
      async code(exchange, interaction, { code = '', email = '' }) {
        const person = await people.confirm(exchange.uid, code.trim(), originOf(exchange))
        await enter(exchange, interaction, 'code', { person, email })
      },
    },
  }
}
