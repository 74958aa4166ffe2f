import type { Interaction } from 'oidc-provider'
import { departurePage, externalSignInPage } from '#edges/oauth/pages.ts'
import {
  clientOf,
  type Exchange,
  refusals,
  type SignInMethod,
  send,
  signedIn,
} from '#edges/oauth/provider/sign-in-request.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import { isOwnClient } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'

/** This is the sign-in page for people who sign in at an external identity provider, with the way there and back. */

const freshReasons = new Set(['login_prompt', 'max_age'])
/** Whether the client or the person wants the credentials to be asked for again. */
const wantsFreshSignIn = ({ prompt }: Interaction): boolean =>
  prompt.name === 'consent' || prompt.reasons.some((reason) => freshReasons.has(reason))

/**
 * On a page of the gateway, a sign-in counts as the confirmation of an act only if the identity provider was asked to
 * authenticate the person anew.
 */
const mayConfirm = (interaction: Interaction): boolean =>
  wantsFreshSignIn(interaction) || !isOwnClient(String(interaction.params.client_id))

const outageSentence = (provider: string): string =>
  `${provider} does not answer at the moment. Nothing was changed; try again in a moment.`

export function createExternalSignIn(federation: NonNullable<OAuth['federation']>): SignInMethod {
  const { name: provider } = federation
  const showPage = async (
    exchange: Exchange,
    interaction: Interaction,
    { status = 200, error }: { status?: number; error?: string } = {},
  ): Promise<void> => {
    const { name: client } = await clientOf(exchange, interaction)
    send(exchange, status, externalSignInPage({ uid: exchange.uid, client, error, provider }))
  }

  /** If the identity provider is down, the page says so, and the person may try again on it. */
  const unlessDown = async (exchange: Exchange, interaction: Interaction, run: () => Promise<void>) => {
    try {
      await run()
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'unavailable') throw error
      exchange.response.setHeader('retry-after', '10')
      await showPage(exchange, interaction, { status: 503, error: outageSentence(provider) })
    }
  }

  return {
    show: (exchange, interaction) => showPage(exchange, interaction),
    steps: {
      continue: (exchange, interaction) =>
        unlessDown(exchange, interaction, async () => {
          const url = await federation.begin(exchange.uid, wantsFreshSignIn(interaction))
          send(exchange, 200, departurePage(provider, url))
        }),
    },
    receive: (exchange, interaction, query) =>
      unlessDown(exchange, interaction, async () => {
        const person = await federation.finish(exchange.uid, query)
        if (person.ok) {
          const at = mayConfirm(interaction) ? person.value.signedInAt : null
          return signedIn(exchange, person.value, { amr: [], interaction, at })
        }
        await showPage(exchange, interaction, { status: 422, error: refusals[person.why] })
      }),
  }
}
