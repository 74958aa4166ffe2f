import type { Random } from '#kernel/id.ts'
import type { ExternalIdentity, OpenIdProvider, PendingSignIn } from '#upstreams/openid/openid.ts'
import type { Records } from './authorization-server-records.ts'
import type { Outcome, Person } from './email-sign-in.ts'
import type { Identities } from './identities.ts'

/** This module handles the sign-in at an external identity provider, from the departure of a browser to its return. */

export type Federation = {
  name: string
  /** Returns the address to send the browser of this interaction to. Throws `unavailable`. */
  begin(interaction: string, isFresh: boolean): Promise<string>
  /** `query` is the query with which the provider sent the browser back. Each call of `begin` allows one return. */
  finish(interaction: string, query: string): Promise<Outcome<FederatedPerson>>
}
/** `signedInAt` is when the provider asked for the credentials, or null if it does not say. */
type FederatedPerson = Person & { signedInAt: Date | null }

type FederationDeps = {
  provider: OpenIdProvider
  identities: Identities
  records: Pick<Records, 'of'>
  random: Random
  redirectUri: () => string
}

const pendingSeconds = 900
const model = 'ExternalSignIn'

/** The state names the interaction, so that one address serves all interactions; the rest is unguessable. */
const stateOf = (interaction: string, random: Random): string =>
  `${interaction}.${Buffer.from(random.bytes(24)).toString('base64url')}`
const stateForm = /^([\w-]{16,64})\.[\w-]{32}$/
export const interactionOfState = (state: unknown): string | undefined =>
  typeof state === 'string' ? stateForm.exec(state)?.[1] : undefined

export function createFederation({
  provider,
  identities,
  records,
  random,
  redirectUri,
}: FederationDeps): Federation {
  const store = records.of(model)
  const personOf = async ({
    email,
    isEmailVerified,
    signedInAt,
    ...identity
  }: ExternalIdentity): Promise<Outcome<FederatedPerson>> => {
    if (email === undefined || !isEmailVerified) return { ok: false, why: 'unverified' }
    const person = await identities.enter({ ...identity, email })
    return person.ok ? { ok: true, value: { ...person.value, signedInAt } } : person
  }

  return {
    name: new URL(provider.issuer).host,
    async begin(interaction, isFresh) {
      const state = stateOf(interaction, random)
      const { url, pending } = await provider.begin({ redirectUri: redirectUri(), state, isFresh })
      // An interaction has one pending sign-in at the provider. A new one replaces it, even if it was used.
      await store.destroy(interaction)
      await store.upsert(interaction, pending, pendingSeconds)
      return url
    },
    async finish(interaction, query) {
      const pending = (await store.find(interaction)) as PendingSignIn | undefined
      const isCurrent = pending?.issuer === provider.issuer && pending.redirectUri === redirectUri()
      const isOwn = isCurrent && new URLSearchParams(query).get('state') === pending.state
      if (!isOwn || !(await store.consume(interaction))) return { ok: false, why: 'interrupted' }
      const result = await provider.finish(pending, query)
      if (!result.ok) return { ok: false, why: result.why }
      return personOf(result.identity)
    },
  }
}
