import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createVenueApp, type TaskAnswer, type User, type VenueApp } from './venue-app.ts'

type Setup = TaskAnswer & { account_mode: string; account_value_usd: string; withdrawable_usd: string }

describe('an account with one balance for perpetuals and spot', () => {
  let app: VenueApp
  before(async () => {
    app = await createVenueApp()
    await app.price('BTC', 100_000)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const executed = async (name: string, body: object, user: User): Promise<TaskAnswer> => {
    const said = await app.call(name, body, user)
    assert.equal(said.outcome, 'executed', JSON.stringify(said))
    return said
  }

  for (const mode of ['unifiedAccount', 'portfolioMargin'])
    test(`funds, opens, closes and withdraws in the mode ${mode}`, async () => {
      const user = await app.addUser()
      await app.fundWallet(user, '1000')
      await app.call('perp_setup', {}, user)
      await executed('perp_fund', { amount_usd: '500' }, user)
      await app.market.control('POST', '/account-mode', { user: user.evm, mode })
      await executed('perp_fund', { amount_usd: '100' }, user)

      const status = (await app.call('perp_setup_status', {}, user)) as Setup
      assert.deepEqual(
        [status.account_mode, status.account_value_usd, status.withdrawable_usd, status.setup_complete],
        [mode === 'unifiedAccount' ? 'unified' : 'portfolio', '600', '600', true],
      )
      await executed('perp_open', { asset: 'BTC', side: 'long', size: '0.01', leverage: 5 }, user)
      const held = await app.call('perp_orders', {}, user)
      assert.equal(held.positions[0]?.size, '0.01')
      assert.ok(Number(held.account.account_value_usd) > 590, JSON.stringify(held.account))
      assert.ok(Number(held.account.withdrawable_usd) > 300, JSON.stringify(held.account))

      await assert.rejects(
        app.call('perp_open', { asset: 'BTC', side: 'long', size: '0.1', leverage: 5 }, user),
        (fault: { code: string; extras: { required: string; available: string } }) =>
          fault.code === 'insufficient_balance' && Number(fault.extras.available) > 300,
      )
      await executed('perp_close', { asset: 'BTC' }, user)
      const { result } = await executed('perp_withdraw', { amount_usd: '550' }, user)
      assert.equal(result.amount, '549000000')
      const left = (await app.call('perp_setup_status', {}, user)) as Setup
      assert.ok(Number(left.account_value_usd) < 50, left.account_value_usd)
      await assert.rejects(
        app.call('perp_withdraw', { amount_usd: '500' }, user),
        (fault: { code: string; extras: { required: string; available: string; token: string } }) =>
          fault.code === 'insufficient_balance' &&
          fault.extras.required === '500' &&
          fault.extras.token === 'USDC' &&
          fault.extras.available === left.withdrawable_usd,
      )
    })
})
