/** What the account page lists of the apps that a person has connected. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { query } from '#store/query.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

test('of more than a hundred connections the latest are listed, each app once with its newest grant', async () => {
  const accountId = '01900000-0000-7000-8000-000000000001'
  await query(
    app.database.pool,
    `insert into oauth_record (model, id, payload, account_id, created_at, expires_at)
     select 'Grant', 'grant-' || n || '-' || turn,
       jsonb_build_object('accountId', $1::text, 'clientId', 'client-' || lpad(n::text, 3, '0')),
       $1, now() - interval '1 day' + make_interval(secs => n + turn * 1000), now() + interval '1 day'
     from generate_series(1, 130) n, generate_series(0, 1) turn returning id`,
    [accountId],
  )
  const listed = await app.composed.features.oauth!.connections.list(accountId)
  const ids = listed.map(({ clientId }) => clientId)
  assert.deepEqual(
    ids,
    Array.from({ length: 100 }, (_each, at) => `client-${String(130 - at).padStart(3, '0')}`),
  )
})
