/** The shares of quotes of users whose orders are decided by one quote. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { aero, createOrderUsers, type OrderUsers, startPrice } from './order-users.ts'
import { swapOf } from './swap-users.ts'

/** Of one user for swaps, and what a sale of a token asks for: 15 of these quotes in a minute. */
const quotesPerMinute = 60

describe('orders that share a quote', () => {
  let users: OrderUsers
  before(async () => {
    users = await createOrderUsers({
      RELAY_QUOTES_PER_MINUTE: String(quotesPerMinute),
      LIFI_URL: 'off',
    })
    await users.pool.move(startPrice)
  })
  after(() => users?.[Symbol.asyncDispose]())

  test('a user whose share of the quotes is used up keeps no stop of another one from firing', async () => {
    const spender = await users.holder()
    const owner = await users.holder()
    for (const person of [spender, owner]) await users.leave(person, { stop_losses: [{ price_usd: '1.1' }] })
    const sale = {
      chain_id_in: aero.chain_id,
      token_in: aero.token_address,
      token_out: 'USDC',
      amount: '10000000000000000000',
      dryrun: true,
    }
    let refused = await swapOf(spender, sale)
    for (let n = 0; n < quotesPerMinute && refused.status === 200; n += 1)
      refused = await swapOf(spender, sale)
    assert.deepEqual(
      [refused.status, (refused.body as unknown as Record<string, unknown>).budget_of],
      [503, 'account'],
      JSON.stringify(refused.body),
    )
    await users.pool.move(1.0)
    assert.equal((await users.firedTask(owner, 'hook_execute')).outcome, 'executed')
    assert.equal(await users.held(owner), 0n)
  })
})
