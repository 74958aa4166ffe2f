import { errors, Provider } from 'oidc-provider'
import type { RecordStore } from '#features/oauth/authorization-server-records.ts'
import type { OAuth } from '#features/oauth/oauth.ts'
import { isOwnClient } from '#kernel/contract/caller.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'

/**
 * Makes a record store the storage of the provider, which chooses the name and id of each record. A code or token can
 * be used only once.
 */
const adapterOf = (store: RecordStore, upsert: RecordStore['upsert'] = store.upsert) => ({
  upsert,
  find: store.find,
  findByUid: store.findByUid,
  findByUserCode: async () => undefined,
  async consume(id: string) {
    if (!(await store.consume(id))) throw new errors.InvalidGrant('it was used at the same time')
  },
  destroy: store.destroy,
  revokeByGrantId: store.revokeByGrantId,
})

/** Storing a grant connects the app to the person's account, unless the client is a page of this gateway. */
function grantAdapter({ records, connections }: OAuth) {
  const store = records.of('Grant')
  return adapterOf(store, (id, grant, seconds) =>
    isOwnClient(String(grant.clientId))
      ? store.upsert(id, grant, seconds)
      : connections.connect(id, grant, seconds),
  )
}

/**
 * Anybody may begin a sign-in, so the number of open sign-ins of one IP address is limited. Only the request that
 * begins a sign-in stores the address; the later pages of the sign-in store none.
 */
function interactionAdapter({ records }: OAuth) {
  const store = records.of('Interaction')
  return adapterOf(store, (id, interaction, seconds) =>
    store.upsert(id, interaction, seconds, Provider.ctx && addressKey(Provider.ctx.ip)),
  )
}

/**
 * Two concurrent uses of a refresh token do not see each other. The later one fails at the store, and marks the grant
 * as contested, since somebody else may have the token.
 */
function refreshTokenAdapter({ records, grants }: OAuth) {
  const store = records.of('RefreshToken')
  const adapter = adapterOf(store)
  return {
    ...adapter,
    consume: (id: string) =>
      adapter.consume(id).catch(async (error: unknown) => {
        const token = await store.find(id)
        if (typeof token?.grantId === 'string') await grants.contest(token.grantId)
        throw error
      }),
  }
}

export function recordAdapter(model: string, oauth: OAuth) {
  if (model === 'Grant') return grantAdapter(oauth)
  if (model === 'Interaction') return interactionAdapter(oauth)
  if (model === 'RefreshToken') return refreshTokenAdapter(oauth)
  return adapterOf(model === 'Session' ? oauth.sessions.store : oauth.records.of(model))
}
