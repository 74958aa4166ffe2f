import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Caller, type Scope, scopes } from '#kernel/caller.ts'
import { Fault } from '#kernel/fault.ts'
import { admit } from './authenticate.ts'

const callerWith = (granted: readonly Scope[]): Caller => ({
  userId: 'user',
  agentId: 'agent',
  scheme: 'keypair',
  scopes: new Set(granted),
})
const stale = async (): Promise<Caller> => {
  throw new Fault('unauthorized', 'The token is not known')
}

test('a token reaches what its scope names, and nothing else', async () => {
  for (const scope of scopes) {
    const caller = callerWith([scope])
    assert.equal(await admit(scope, 'Bearer token', async () => caller), caller)
    const others = scopes.filter((each) => each !== scope)
    await assert.rejects(
      admit(scope, 'Bearer token', async () => callerWith(others)),
      { code: 'insufficient_scope', extras: { scope } },
      scope,
    )
  }
})

test('a public path takes a stale token for none, and every other path refuses it', async () => {
  assert.equal(await admit('public', undefined, stale), null)
  assert.equal(await admit('public', 'Bearer token', stale), null)
  await assert.rejects(admit('read', 'Bearer token', stale), { code: 'unauthorized' })
})

test('a failure of the database is told on a public path too', async () => {
  const failing = async (): Promise<Caller> => {
    throw new Error('the database is away')
  }
  await assert.rejects(admit('public', 'Bearer token', failing), /the database is away/)
})
