import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { faucetGrantAdmission } from '#features/wallets/faucet-grant.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type ChainsApp, createChainsApp, type User } from './chains-app.ts'
import { find, receiveToken, silenceOneChain, statuses } from './holdings-in-time.ts'

describe('wallets and holdings', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp()
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
  })

  const holdingsOf = (user: User, input: object = {}) => app.call('wallets_holdings', input, user)

  test('each user has one wallet for all EVM chains and one for Solana', async () => {
    const user = await app.addUser()
    const { wallets, provisioning } = await app.call('wallets_list', {}, user)
    assert.deepEqual(
      wallets.map(({ address, chain_type, supported_chain_ids }) => [
        address,
        chain_type,
        supported_chain_ids,
      ]),
      [
        [user.evm, 'evm', ['1', '8453', '42161', '137']],
        [user.svm, 'solana', ['7565164']],
      ],
    )
    assert.equal(provisioning, false)
  })

  test('an empty wallet has complete and empty holdings', async () => {
    const answer = await holdingsOf(await app.addUser())
    assert.deepEqual(answer.holdings, [])
    assert.equal(answer.total_value_usd, '0')
    assert.equal(answer.complete, true)
    assert.equal(answer.chains.length, 5)
  })

  test('every chain and both token programs of Solana are listed with price and value', async () => {
    const user = await app.addUser()
    for (const [chainId, address, token, amount] of [
      ['8453', user.evm, 'USDC', '12.5'],
      ['8453', user.evm, 'native', '0.5'],
      ['1', user.evm, 'WBTC', '0.01'],
      ['7565164', user.svm, 'USDC', '3'],
      ['7565164', user.svm, 'PYUSD', '7.25'],
      ['7565164', user.svm, 'native', '2'],
    ] as const)
      await app.fund(chainId, address, token, amount)
    const answer = await holdingsOf(user, { event: 'wallet-refresh' })
    assert.deepEqual(
      answer.holdings.map(({ chain_id, symbol, kind, balance, value_usd }) => [
        chain_id,
        symbol,
        kind,
        balance,
        value_usd,
      ]),
      [
        ['1', 'WBTC', 'token', '0.01', '1000'],
        ['8453', 'ETH', 'native', '0.5', '1750'],
        ['8453', 'USDC', 'token', '12.5', '12.5'],
        ['7565164', 'SOL', 'native', '2', '360'],
        ['7565164', 'USDC', 'token', '3', '3'],
        ['7565164', 'PYUSD', 'token', '7.25', '7.25'],
      ],
    )
    assert.equal(answer.total_value_usd, '3132.75')
    assert.equal(answer.complete, true)
    for (const each of answer.holdings) {
      assert.ok(each.symbol && Number.isInteger(each.decimals))
      assert.equal(each.unrealized_pnl_usd, null)
    }
    const solana = await holdingsOf(user, { chain_type: '1' })
    assert.deepEqual(Object.keys(statuses(solana)), ['7565164'])
    const evm = await holdingsOf(user, { chain_type: 'evm' })
    assert.equal(evm.chains.length, 4)
  })

  test('a received token is shown, also in a wallet that was just read as empty', async () => {
    await receiveToken(app)
  })

  test('a deposit moves from cash to shares in the next reading, and the shares have a value', async () => {
    const user = await app.fundedUser('100')
    assert.equal(find(await holdingsOf(user), '8453', 'USDC')?.balance, '100')
    const done = await app.call('earn_deposit', { amount_usdc: '40' }, user)
    assert.equal(done.outcome, 'executed')
    const answer = await holdingsOf(user)
    assert.equal(find(answer, '8453', 'USDC')?.balance, '60')
    const shares = find(answer, '8453', 'evUSDC')
    assert.equal(shares?.kind, 'earn_share')
    assert.ok(Math.abs(Number(shares?.value_usd) - 40) < 0.00001, String(shares?.value_usd))
  })

  test('an unreachable chain is reported as such, and the others are served', async () => {
    await silenceOneChain(app)
  })

  test('unknown and uncertain prices are null and mark the total as incomplete', async () => {
    const user = await app.addUser()
    await app.fund('8453', user.evm, 'AERO', '5')
    await app.fund('8453', user.evm, 'USDC', '2')
    await app.control('POST', '/prices', { symbol: 'AERO', confidence: 0.5 })
    const answer = await holdingsOf(user)
    const aero = find(answer, '8453', 'AERO')
    assert.equal(aero?.price_usd, null)
    assert.equal(aero?.value_usd, null)
    assert.equal(answer.total_value_usd, '2')
    assert.equal(answer.complete, false)
    await app.control('POST', '/prices', { symbol: 'AERO', confidence: 0.99 })
  })

  test('a new user gets the faucet grant on every chain, once', async () => {
    const user = await app.addUser()
    const own = [
      { id: uuidv7(new Date(), systemRandom), kind: 'evm' as const, address: user.evm },
      { id: uuidv7(new Date(), systemRandom), kind: 'svm' as const, address: user.svm },
    ]
    const taskId = await app.grantFaucet(user, faucetGrantAdmission(own, app.main.chains.table))
    const done = await app.ended(user, taskId)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const once = await holdingsOf(user, { event: 'wallet-refresh' })
    assert.equal(find(once, '8453', 'USDC')?.balance, '10000')
    assert.equal(find(once, '7565164', 'USDC')?.balance, '10000')
    await app.ended(user, await app.grantFaucet(user, faucetGrantAdmission(own, app.main.chains.table)))
    const twice = await holdingsOf(user, { event: 'wallet-refresh' })
    assert.equal(find(twice, '8453', 'USDC')?.balance, '10000')
  })
})
