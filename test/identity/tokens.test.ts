import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { tokens } from '#features/auth/tokens.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { type House, house } from './house.ts'

let it: House
before(async () => {
  it = await house()
})
after(() => it[Symbol.asyncDispose]())

const flood = 3_000

test('a flood of bad tokens costs few statements, and a good one behind them waits for these few', async () => {
  const token = await it.token(await it.enrol())
  let statements = 0
  const query = ((...given: Parameters<typeof it.on.query>) => {
    statements += 1
    return it.on.query(...given)
  }) as typeof it.on.query
  const { authenticate } = tokens({ on: { query }, clock, random, publishRevoked: async () => {} })
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
