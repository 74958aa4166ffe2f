import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPasswords } from './passwords.ts'

const requester = { address: '192.0.2.1' }

test('a password is stored by scrypt at its full cost, and only that password is right', async () => {
  const passwords = createPasswords()
  const stored = await passwords.hash('correct horse', requester)
  assert.match(stored, /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
  assert.equal(await passwords.isRight('correct horse', stored, requester), true)
  assert.equal(await passwords.isRight('wrong horse', stored, requester), false)
})

test('an unknown person costs one derivation at the same cost', async () => {
  const costs: object[] = []
  const passwords = createPasswords(async (_password, _salt, cost) => {
    costs.push(cost)
    return Buffer.alloc(32)
  })
  assert.equal(await passwords.isRight('any', undefined, requester), false)
  assert.deepEqual(costs, [{ N: 32_768, r: 8, p: 3 }])
})
