/** How soon a received token is shown, and how long a silent chain delays the others. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Answer, type ChainsApp, createChainsApp, type User } from './chains-app.ts'

describe('holdings in time', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp()
  })
  after(() => app?.[Symbol.asyncDispose]())

  const holdingsOf = (user: User, input: object = {}) => app.call('wallets_holdings', input, user)
  const find = ({ holdings }: Answer, chainId: string, symbol: string) =>
    holdings.find((each) => each.chain_id === chainId && each.symbol === symbol)
  const statuses = ({ chains }: Answer) =>
    Object.fromEntries(chains.map(({ chain_id, status }) => [chain_id, status]))

  test('a received token is shown within two seconds, also in a wallet that was just read as empty', async () => {
    const user = await app.addUser()
    assert.deepEqual((await holdingsOf(user)).holdings, [])
    await app.fund('42161', user.evm, 'ARB', '10')
    const startedMs = performance.now()
    while (!find(await holdingsOf(user), '42161', 'ARB'))
      assert.ok(performance.now() - startedMs < 2_000, 'the token was not shown in time')
  })

  test('an unreachable chain is quickly reported as such, and the others are served', async () => {
    const user = await app.addUser()
    await app.fund('1', user.evm, 'LINK', '5')
    await app.fund('137', user.evm, 'USDC', '9')
    await holdingsOf(user)
    const fresh = await app.addUser()
    await app.control('PUT', '/faults', { target: 'evm:137', silent: true })
    try {
      const startedMs = performance.now()
      const answer = await holdingsOf(user, { event: 'wallet-refresh' })
      assert.ok(performance.now() - startedMs < 3_000, 'a silent chain delayed the answer')
      assert.deepEqual(statuses(answer), {
        '1': 'ok',
        '8453': 'ok',
        '42161': 'ok',
        '137': 'stale',
        '7565164': 'ok',
      })
      assert.equal(find(answer, '1', 'LINK')?.balance, '5')
      assert.equal(find(answer, '137', 'USDC')?.balance, '9')
      assert.equal(answer.stale, true)
      assert.equal(answer.complete, false)
      assert.equal(answer.errors[0]?.chain_id, '137')
      const first = await holdingsOf(fresh)
      assert.equal(statuses(first)['137'], 'failed')
    } finally {
      await app.control('DELETE', '/faults', {})
    }
    const later = await holdingsOf(user, { event: 'wallet-refresh' })
    assert.equal(statuses(later)['137'], 'ok')
  })
})
