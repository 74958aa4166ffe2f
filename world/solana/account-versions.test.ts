import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Account } from './account.ts'
import { accountVersions } from './account-versions.ts'

const holding = (lamports: bigint): Account => ({
  lamports,
  data: new Uint8Array(),
  owner: 'owner',
  executable: false,
})

test('an account is read as it was at the end of a slot, whatever later slots wrote', () => {
  const now = new Map<string, Account>()
  const versions = accountVersions((address) => now.get(address))
  const write = (slot: number, lamports: bigint) => {
    versions.record(slot, [['a', now.get('a')]])
    now.set('a', holding(lamports))
  }
  write(10, 1n)
  write(12, 2n)
  write(12, 3n)
  write(15, 4n)
  const seen = [9, 10, 11, 12, 14, 15, 99].map((slot) => versions.at('a', slot)?.lamports)
  assert.deepEqual(seen, [undefined, 1n, 1n, 3n, 3n, 4n, 4n])
  assert.deepEqual(versions.changedSince(14), ['a'])
  assert.deepEqual(versions.changedSince(15), [])
  versions.prune(12)
  assert.equal(versions.at('a', 14)?.lamports, 3n)
  versions.prune(15)
  assert.equal(versions.at('a', 12)?.lamports, 4n, 'no older version is stored')
})
