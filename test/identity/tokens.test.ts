import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createTokens } from '#features/auth/tokens.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { createIdentityApp, type IdentityApp } from './identity-app.ts'

let app: IdentityApp
before(async () => {
  app = await createIdentityApp()
})
after(() => app[Symbol.asyncDispose]())

const flood = 3_000

test('a flood of bad tokens costs few statements, and a good one behind them waits for these few', async () => {
  const token = await app.token(await app.register())
  let statements = 0
  const query = ((...given: Parameters<typeof app.db.query>) => {
    statements += 1
    return app.db.query(...given)
  }) as typeof app.db.query
  const { authenticate } = createTokens({ db: { query }, clock, random, publishRevoked: async () => {} })
  const guesses = Array.from({ length: flood }, () =>
    authenticate(`Bearer agt_${randomBytes(32).toString('base64url')}`).then(
      () => 'admitted',
      ({ code }: { code: string }) => code,
    ),
  )
  const { scopes } = await authenticate(`Bearer ${token}`)
  assert.ok(scopes.has('trade'))
  assert.deepEqual(new Set(await Promise.all(guesses)), new Set(['invalid_token']))
  assert.ok(statements <= 20, `${statements} statements`)
})
