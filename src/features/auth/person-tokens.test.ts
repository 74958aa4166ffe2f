import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccessClaims } from '#features/oauth/access-tokens.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Queryable } from '#store/query.ts'
import { createPersonTokens } from './person-tokens.ts'

/** Tokens named `<person>.<anything>`, verifications that can be held, and people as the database has them. */
function fixture() {
  const time = { ms: 1_000_000 }
  const verified: string[] = []
  const suspended = new Set<string>()
  const disconnected = new Set<string>()
  let held: PromiseWithResolvers<void> | undefined
  const verify = async (token: string): Promise<AccessClaims> => {
    verified.push(token)
    const personId = token.split('.')[0]!
    return {
      personId,
      grantId: `grant of ${personId}`,
      clientId: 'client',
      scopes: [],
      expiresAt: new Date(time.ms + 300_000),
      signedInAt: null,
    }
  }
  const rowsOf = (person: string) => {
    const suspendedAt = suspended.has(person) ? new Date(time.ms) : null
    const row = { email: `${person}@example.com`, agent_id: `agt_${person}`, suspended_at: suspendedAt }
    return disconnected.has(person) ? [] : [row]
  }
  const db = {
    async query({ values }: { values: unknown[] }) {
      const rows = rowsOf(String(values[0]))
      // The answer is as old as the query.
      await held?.promise
      return { rows, rowCount: rows.length }
    },
  } as unknown as Queryable
  const people = createPersonTokens({
    db,
    clock: { now: () => new Date(time.ms) },
    verify,
    signInAgeMaxSeconds: 300,
  })
  const call = (token: string) => people.caller(token, `hash of ${token}`)
  const codeOf = (token: string) =>
    call(token).then(
      () => 'accepted',
      (error: unknown) => (error instanceof Fault ? error.code : String(error)),
    )
  return {
    time,
    people,
    verified,
    suspended,
    disconnected,
    call,
    codeOf,
    hold() {
      held = Promise.withResolvers<void>()
      return () => {
        held?.resolve()
        held = undefined
      }
    },
  }
}

test('the token of a person stays verified while others revoke theirs', async () => {
  const { people, verified, call } = fixture()
  await call('ann.1')
  for (let turn = 0; turn < 1_000; turn++) {
    people.end('bob')
    await call('ann.1')
  }
  assert.deepEqual(verified, ['ann.1'])
})

test('a suspension and a revocation of the own user count at once, for every token', async () => {
  const { people, verified, suspended, disconnected, call, codeOf } = fixture()
  await call('ann.1')
  await call('ann.2')
  suspended.add('ann')
  people.end('ann')
  assert.deepEqual([await codeOf('ann.1'), await codeOf('ann.2')], ['suspended', 'suspended'])
  suspended.clear()
  people.end('ann')
  assert.deepEqual([await codeOf('ann.1'), await codeOf('ann.2')], ['accepted', 'accepted'])
  disconnected.add('ann')
  people.end('ann')
  assert.deepEqual([await codeOf('ann.1'), await codeOf('ann.2')], ['invalid_token', 'invalid_token'])
  disconnected.clear()
  await call('ann.1')
  const before = verified.length
  await call('ann.1')
  assert.equal(verified.length, before, 'what was read after the end is cached again')
})

test('a verification that began before the end of its user is worth nothing after it', async () => {
  for (const ends of [
    ({ people }: ReturnType<typeof fixture>) => people.end('ann'),
    ({ people }: ReturnType<typeof fixture>) => people.clear(),
  ]) {
    const parts = fixture()
    const { suspended, codeOf, hold, call } = parts
    const release = hold()
    const early = codeOf('ann.1')
    await Promise.resolve()
    suspended.add('ann')
    ends(parts)
    const late = codeOf('ann.1')
    release()
    assert.deepEqual([await early, await late], ['suspended', 'suspended'])
    assert.equal(await codeOf('ann.1'), 'suspended')
    assert.equal((await call('bob.1')).userId, 'bob')
  }
})

test('ends of more users than are remembered make every token count as ended', async () => {
  const { people, suspended, verified, codeOf, call } = fixture()
  await call('ann.1')
  await call('bob.1')
  suspended.add('ann')
  people.end('ann')
  for (let n = 0; n < 25_000; n++) people.end(`user ${n}`)
  assert.equal(await codeOf('ann.1'), 'suspended')
  await call('bob.1')
  assert.equal(verified.filter((token) => token === 'bob.1').length, 2)
})
