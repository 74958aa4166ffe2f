/** What users paid for tokens, also where a token announces numbers that no column holds. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { entryPriceOf, recordFill } from '#engines/cost-basis/store.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

let fixture: EngineFixture
before(async () => {
  fixture = await openFixture()
})
after(() => fixture[Symbol.asyncDispose]())

const usdc = { chainId: '8453', address: '0xUSDC', decimals: 6, units: 0n }
const token = { chainId: '8453', address: '0xTOKEN', decimals: 18, units: 0n }
const one = 10n ** 18n

test('a token that announces any number of units keeps no swap from ending', async () => {
  const userId = newUser()
  await fixture.rows(
    `insert into app_user (id, agent_id, auth_scheme, created_at)
       values ($1, 'agt_00000000000000000000000001', 'keypair', now())`,
    userId,
  )
  const buy = (units: bigint) =>
    fixture.admin.transaction((tx) =>
      recordFill(tx, {
        userId,
        sold: { ...usdc, units: 5_000_000n },
        bought: { ...token, units },
        value: 5n * one,
        at: new Date(),
      }),
    )
  await buy(2n * one)
  assert.equal(Number(await entryPriceOf(fixture.admin.pool, userId, token)), 2.5)
  for (const units of [(1n << 256n) - 1n, 10n * ((1n << 256n) - 1n)]) await buy(units)
  await buy(one)
  assert.ok(Number(await entryPriceOf(fixture.admin.pool, userId, token)) >= 0)
})
