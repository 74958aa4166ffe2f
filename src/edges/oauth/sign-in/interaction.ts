import type { Client, Interaction } from 'oidc-provider'
import { chosenCredits } from '#edges/oauth/chosen-credits.ts'
import { isProven, withProof } from '#edges/oauth/csrf-token.ts'
import { consentPage, errorPage } from '#edges/oauth/pages.ts'
import { type ActingScope, actingScopes, oauthPaths } from '#edges/oauth/paths-and-scopes.ts'
import { isPressed, isRefusedOrigin } from '#edges/oauth/provider/browser-request-checks.ts'
import type { Form } from '#edges/oauth/provider/request-bodies.ts'
import {
  clientOf,
  type Exchange,
  findInteraction,
  finish,
  formSource,
  type SignInStep,
  send,
} from '#edges/oauth/provider/sign-in-request.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import type { Clock } from '#kernel/clock.ts'
import { isOwnClient } from '#kernel/contract/caller.ts'
import { createExternalSignIn } from './external-sign-in.ts'
import { createOwnSignIn } from './own-sign-in.ts'

type InteractionDeps = Pick<
  OAuth,
  'people' | 'passkeys' | 'knownBrowsers' | 'federation' | 'grants' | 'connections' | 'creditsPerDay'
> & {
  baseUrl: () => string
  clock: Clock
  signUp: (person: { id: string; email: string }, address: string) => Promise<void>
}

const redirectText = (redirectUri: unknown): string => {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri) : null
  if (!url) return 'an unknown address'
  if (!/^https?:$/.test(url.protocol)) return `an app on this device (${url.protocol})`
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  return isLocal ? `an app on this device (${url.host})` : url.host
}

const list = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

const words = (scope: unknown): string[] =>
  (typeof scope === 'string' ? scope.split(' ') : []).filter(Boolean)
const isActing = (scope: string): boolean => (actingScopes as readonly string[]).includes(scope)
const withChoice = (scope: unknown, chosen: readonly ActingScope[]): string =>
  [...words(scope).filter((each) => !isActing(each)), ...chosen].join(' ')

type Consent = { accountId: string; chosen: readonly ActingScope[]; base: string; isContested: boolean }

/**
 * Grants what the client asked for and does not have yet. Of the acting scopes the client gets only those that the
 * person chose now, so that a later request without a consent gets no more.
 */
async function grantRequested(
  { provider }: Exchange,
  interaction: Interaction,
  { accountId, chosen, base, isContested }: Consent,
): Promise<string> {
  const { prompt, params, grantId } = interaction
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const { openid, resources: earlier } = known ?? {}
  const grant =
    known && !isContested
      ? known
      : new provider.Grant({ accountId, clientId: String(params.client_id), openid, resources: earlier })
  const scopes = list(missingOIDCScope)
  if (scopes.length > 0) grant.addOIDCScope(scopes.join(' '))
  const claims = list(missingOIDCClaims)
  if (claims.length > 0) grant.addOIDCClaims(claims)
  for (const [resource, missing] of Object.entries(missingResourceScopes ?? {}))
    grant.addResourceScope(resource, list(missing).join(' '))
  const named = [params.resource ?? base].flat().map(String)
  const resources = { ...Object.fromEntries(named.map((resource) => [resource, ''])), ...grant.resources }
  grant.resources = Object.fromEntries(
    Object.entries(resources).map(([resource, scope]) => [resource, withChoice(scope, chosen)]),
  )
  const saved = await grant.save()
  // The records of a contested grant end with it, so the interaction refers to the new one.
  interaction.grantId = saved
  // The code gets the scopes of the request; the token answer names them if they differ from those of the client.
  const scope = withChoice(params.scope, chosen)
  if (scope !== '') params.scope = scope
  else delete params.scope
  await interaction.persist()
  return saved
}

export function createInteractions(deps: InteractionDeps) {
  const { people, federation, grants, connections, creditsPerDay, baseUrl, signUp } = deps
  const connect = async (
    exchange: Exchange,
    interaction: Interaction,
    chosen: Pick<Consent, 'accountId' | 'chosen'>,
  ): Promise<void> => {
    const { grantId: former } = interaction
    // The grant may have been contested while the page was open.
    const isContested = former !== undefined && (await grants.isContested(former))
    const given = { ...chosen, base: baseUrl(), isContested }
    const grantId = await grantRequested(exchange, interaction, given)
    await grants.endContested(chosen.accountId, String(interaction.params.client_id))
    await finish(exchange, { consent: { grantId } })
  }
  const method = federation ? createExternalSignIn(federation) : createOwnSignIn(deps)
  const showConsent = async (exchange: Exchange, interaction: Interaction): Promise<void> => {
    const { client, name } = await clientOf(exchange, interaction)
    const { session } = interaction
    const person = session && (await people.find(session.accountId))
    if (!client || !person) return method.show(exchange, interaction)
    // The client is a page of this gateway, so the person who opens it is the one who acts.
    if (isOwnClient(client.clientId))
      return connect(exchange, interaction, { accountId: person.id, chosen: ['manage', 'propose'] })
    const html = consentPage({
      uid: exchange.uid,
      client: name,
      redirect: redirectText(interaction.params.redirect_uri),
      publisher: publisherOf(client),
      email: person.email,
      scopes: words(interaction.params.scope),
      creditsPerDay: creditsPerDay.default,
      creditsPerDayMax: creditsPerDay.max,
    })
    send(exchange, 200, withProof(html, session), formSource(interaction.params.redirect_uri))
  }

  const creditsOf = chosenCredits(creditsPerDay)

  const allow = async (exchange: Exchange, interaction: Interaction, form: Form): Promise<void> => {
    const accountId = interaction.session?.accountId
    if (interaction.prompt.name !== 'consent' || accountId === undefined)
      return method.show(exchange, interaction)
    if (!isProven(form, interaction.session))
      return send(exchange, 403, errorPage('The form was sent by another page.', 'origin_not_allowed'))
    const person = await people.find(accountId)
    if (!person) return method.show(exchange, interaction)
    // The app finds everything that it was allowed from its first call on.
    await signUp(person, exchange.address)
    const chosen = actingScopes.filter((scope) => form[scope] === 'yes')
    if (chosen.includes('chat'))
      await connections.allowCredits(
        accountId,
        String(interaction.params.client_id),
        creditsOf(form.chat_credits),
      )
    await connect(exchange, interaction, { accountId, chosen })
  }

  const steps: Record<string, SignInStep> = {
    ...method.steps,
    allow,
    deny: (exchange) =>
      finish(exchange, { error: 'access_denied', error_description: 'The person did not connect the app' }),
  }

  const ended = (exchange: Exchange) =>
    send(exchange, 410, errorPage('It has expired, or was opened in another browser.', 'session_not_found'))

  return {
    async show(exchange: Exchange, view: string | undefined): Promise<void> {
      const interaction = await findInteraction(exchange)
      if (!interaction) return ended(exchange)
      const isConsent = interaction.prompt.name === 'consent'
      if (isConsent && view === undefined) return showConsent(exchange, interaction)
      await method.show(exchange, interaction, view)
    },
    async receive(exchange: Exchange, query: string): Promise<void> {
      const interaction = await findInteraction(exchange)
      if (!interaction || !method.receive) return ended(exchange)
      await method.receive(exchange, interaction, query)
    },
    async submit(exchange: Exchange, step: string, form: Form): Promise<void> {
      if (isRefusedOrigin(exchange.request, baseUrl()))
        return send(exchange, 403, errorPage('The form was sent by another site.', 'origin_not_allowed'))
      const interaction = await findInteraction(exchange)
      if (!interaction) return ended(exchange)
      if (step === 'allow' && !isPressed(exchange.request))
        return send(exchange, 403, errorPage('A person presses this button.', 'origin_not_allowed'))
      const run = Object.hasOwn(steps, step) ? steps[step] : undefined
      if (run) return run(exchange, interaction, form)
      send(exchange, 404, errorPage('There is no such page.', 'not_found'))
    },
  }
}

export const interactionRoutes = {
  show: `${oauthPaths.interaction}/:uid`,
  submit: `${oauthPaths.interaction}/:uid/:step`,
  receive: `${oauthPaths.interaction}/:uid/return`,
}

const publisherOf = ({ clientId, clientIdMetadataDocument }: Client): string | undefined =>
  clientIdMetadataDocument ? URL.parse(clientId)?.host : undefined
