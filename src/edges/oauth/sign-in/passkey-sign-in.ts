import type { Interaction } from 'oidc-provider'
import {
  type Entry,
  type Exchange,
  type SignInStep,
  sendJson,
} from '#edges/oauth/provider/sign-in-request.ts'
import type { Person, Refusal } from '#features/oauth/email-sign-in.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import { passkeyName } from './passkey-name.ts'

type PasskeyView = 'sign-in' | 'sign-up' | 'passkey-sign-up' | 'passkey-create'
type PasskeyStepsDeps = {
  passkeys: NonNullable<OAuth['passkeys']>
  /** Sends a code to the address that is to get an account. */
  begin: SignInStep
  showRefusal(
    exchange: Exchange,
    interaction: Interaction,
    view: PasskeyView,
    refused: { why: Refusal; email?: string },
  ): Promise<void>
  enter(exchange: Exchange, interaction: Interaction, person: Person, entry: Entry): Promise<void>
}

/** RFC 8176: proof of possession of a key, a test of presence, and the key with a fingerprint, face or PIN. */
const passkeyMethods = ['pop', 'user', 'mfa'] as const

export const sendOptions = (exchange: Pick<Exchange, 'response'>, options: object | undefined): void =>
  options ? sendJson(exchange, 200, options) : sendJson(exchange, 409, { error: 'passkey_not_possible' })

export function passkeySteps(deps: PasskeyStepsDeps): Record<string, SignInStep> {
  const { passkeys, begin, showRefusal, enter } = deps
  return {
    'passkey-sign-up': (exchange, interaction, form) =>
      passkeys.isPossible()
        ? begin(exchange, interaction, form)
        : showRefusal(exchange, interaction, 'sign-up', { why: 'passkeyInvalid' }),
    async 'passkey-options'(exchange) {
      sendOptions(exchange, await passkeys.beginSignIn(exchange.uid))
    },
    async passkey(exchange, interaction, { credential = '' }) {
      const person = await passkeys.signIn(exchange.uid, credential, exchange.address)
      if (!person.ok) return showRefusal(exchange, interaction, 'sign-in', person)
      await enter(exchange, interaction, person.value, { amr: passkeyMethods })
    },
    async 'passkey-create-options'(exchange) {
      sendOptions(exchange, await passkeys.beginSignUp(exchange.uid))
    },
    async 'passkey-create'(exchange, interaction, { credential = '' }) {
      const email = await passkeys.verifiedEmailOf(exchange.uid)
      if (email === undefined)
        return showRefusal(exchange, interaction, 'passkey-sign-up', { why: 'passkeyExpired' })
      const name = passkeyName(exchange.request.headers['user-agent'])
      const person = await passkeys.signUp(exchange.uid, { credential, name })
      if (!person.ok) return showRefusal(exchange, interaction, 'passkey-create', { ...person, email })
      await enter(exchange, interaction, person.value, { amr: ['otp', ...passkeyMethods] })
    },
  }
}
