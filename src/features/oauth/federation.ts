import type { Random } from '#kernel/id.ts'
import type { ExternalIdentity, OpenIdProvider, PendingSignIn } from '#upstreams/openid/openid.ts'
import type { Identities } from './identities.ts'
import type { Outcome, Person } from './people.ts'
import type { Records } from './records.ts'

/** Sign-in at an external identity provider, between the departure of a browser and its return. */

export type Federation = {
  /** The host of the provider, for the pages. */
  name: string
  /** The address to send the browser of this interaction to. Throws `unavailable`. */
  begin(interaction: string, isFresh: boolean): Promise<string>
  /** `query`: as the provider sent the browser back. Each departure is good for one return. */
  finish(interaction: string, query: string): Promise<Outcome<FederatedPerson>>
}
/** `signedInAt`: when the provider asked for the credentials, null where it does not say so. */
type FederatedPerson = Person & { signedInAt: Date | null }

type FederationDeps = {
  provider: OpenIdProvider
  identities: Identities
  records: Pick<Records, 'of'>
  random: Random
  /** Where the provider sends browsers back to. */
  redirectUri: () => string
}

const pendingSeconds = 900
const model = 'ExternalSignIn'

/** Names the interaction, so that one address serves all of them; the rest cannot be guessed. */
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
      // One departure per interaction: a later one replaces it, also where it was used.
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
