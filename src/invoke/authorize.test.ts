import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Caller, type Scope, scopes } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { authorize } from './authorize.ts'

const callerWith = (granted: readonly Scope[]): Caller => ({
  userId: 'user',
  agentId: 'agent',
  scheme: 'keypair',
  scopes: new Set(granted),
})
const stale = async (): Promise<Caller> => {
  throw new Fault('unauthorized', 'The token is not known')
}

test('a token reaches the operations of its scope only', async () => {
  for (const scope of scopes) {
    const caller = callerWith([scope])
    assert.equal(await authorize(scope, 'Bearer token', async () => caller), caller)
    const others = scopes.filter((each) => each !== scope)
    await assert.rejects(
      authorize(scope, 'Bearer token', async () => callerWith(others)),
      { code: 'insufficient_scope', extras: { scope } },
      scope,
    )
  }
})

test('a public path ignores a stale token, and every other path rejects it', async () => {
  assert.equal(await authorize('public', undefined, stale), null)
  assert.equal(await authorize('public', 'Bearer token', stale), null)
  await assert.rejects(authorize('read', 'Bearer token', stale), { code: 'unauthorized' })
})

test('a failure of the database is reported on a public path too', async () => {
  const failing = async (): Promise<Caller> => {
    throw new Error('the database is away')
  }
  await assert.rejects(authorize('public', 'Bearer token', failing), /the database is away/)
})
