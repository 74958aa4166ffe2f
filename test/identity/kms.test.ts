import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { createVaultTransit } from '#upstreams/kms/kms.ts'
import { type KmsEmulator, kmsEmulator } from '../harness/kms-emulator.ts'
import { createIdentityApp, faultOf, type IdentityApp } from './identity-app.ts'

let vault: KmsEmulator
let app: IdentityApp
const http = createHttpClient({ failpoints: noFailpoints })
const post = (path: string, body: object) =>
  fetch(`${vault.url}/v1/transit/${path}`, {
    method: 'POST',
    headers: { 'x-vault-token': vault.token },
    body: JSON.stringify(body),
  })
const transit = (key: string, change: { token?: string; url?: string } = {}) =>
  createVaultTransit({ net: http, id: `vault:${key}`, url: vault.url, token: vault.token, key, ...change })

before(async () => {
  vault = await kmsEmulator()
  await post('keys/derived', { type: 'aes256-gcm96', derived: true })
  await post('keys/plain', { type: 'aes256-gcm96' })
  app = await createIdentityApp({ keyEncryptionKeys: createKeyEncryptionKeys(transit('derived')) })
})
after(async () => {
  await app[Symbol.asyncDispose]()
  await http[Symbol.asyncDispose]()
  await vault[Symbol.asyncDispose]()
})

const dek = Buffer.alloc(32, 5)

describe('keys wrapped by Vault', () => {
  for (const name of ['derived', 'plain']) {
    test(`a key wrapped by a ${name} key opens in its context only`, async () => {
      const kek = transit(name)
      const wrapped = await kek.wrap(dek, 'wallet|user|evm')
      assert.equal(Buffer.from(wrapped).includes(dek), false)
      assert.deepEqual(await kek.unwrap(wrapped, 'wallet|user|evm'), dek)
      assert.equal((await faultOf(kek.unwrap(wrapped, 'wallet|thief|evm'))).code, 'upstream_rejected')
    })
  }

  test('after a rotation inside Vault the older wrapped keys still open', async () => {
    const kek = transit('derived')
    const wrapped = await kek.wrap(dek, 'place')
    await post('keys/derived/rotate', {})
    assert.match(Buffer.from(await kek.wrap(dek, 'place')).toString(), /^vault:v2:/)
    assert.deepEqual(await kek.unwrap(wrapped, 'place'), dek)
  })

  test('a wrong token, an unknown key and a sealed or absent Vault are faults, and none contains the token', async () => {
    const away = transit('derived', { url: 'http://127.0.0.1:1' })
    const cases = [
      [transit('derived', { token: 'hvs.wrong' }), 'unavailable'],
      [transit('nobody'), 'upstream_rejected'],
      [away, 'unavailable'],
    ] as const
    for (const [kek, code] of cases) {
      const fault = await faultOf(kek.wrap(dek, 'place'))
      assert.equal(fault.code, code)
      assert.equal(`${fault.message} ${fault.cause}`.includes('hvs.'), false)
    }
    vault.seal(true)
    assert.equal((await faultOf(transit('derived').wrap(dek, 'place'))).code, 'unavailable')
    vault.seal(false)
  })

  test('a user is enrolled with keys that only Vault can open', async () => {
    const agent = await app.register()
    assert.match(agent.agentId, /^agt_/)
    assert.ok(vault.count('encrypt') >= 2)
  })

  test('while Vault is away no user is enrolled, and no row remains', async () => {
    const other = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(transit('derived')) })
    vault.seal(true)
    assert.equal((await faultOf(other.register())).code, 'unavailable')
    vault.seal(false)
    await other.register()
  })
})
