/** Assertions on what holdings show of chains; each function returns the milliseconds that it took. */
import assert from 'node:assert/strict'
import { eventually } from '../harness/gateway.ts'
import type { Answer, ChainsApp, User } from './chains-app.ts'

export const find = ({ holdings }: Answer, chainId: string, symbol: string) =>
  holdings.find((each) => each.chain_id === chainId && each.symbol === symbol)
export const statuses = ({ chains }: Answer) =>
  Object.fromEntries(chains.map(({ chain_id, status }) => [chain_id, status]))
const holdingsOf = (app: ChainsApp, user: User, input: object = {}) =>
  app.call('wallets_holdings', input, user)

export async function receiveToken(app: ChainsApp): Promise<number> {
  const user = await app.addUser()
  assert.deepEqual((await holdingsOf(app, user)).holdings, [])
  await app.fund('42161', user.evm, 'ARB', '10')
  const startedMs = performance.now()
  const seen = async () => (find(await holdingsOf(app, user), '42161', 'ARB') ? true : undefined)
  await eventually(seen, 'the token is shown')
  return performance.now() - startedMs
}

export async function silenceOneChain(app: ChainsApp): Promise<number> {
  const user = await app.addUser()
  await app.fund('1', user.evm, 'LINK', '5')
  await app.fund('137', user.evm, 'USDC', '9')
  await holdingsOf(app, user)
  const fresh = await app.addUser()
  await app.control('PUT', '/faults', { target: 'evm:137', silent: true })
  let tookMs = 0
  try {
    const startedMs = performance.now()
    const answer = await holdingsOf(app, user, { event: 'wallet-refresh' })
    tookMs = performance.now() - startedMs
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
    const first = await holdingsOf(app, fresh)
    assert.equal(statuses(first)['137'], 'failed')
  } finally {
    await app.control('DELETE', '/faults', {})
  }
  const later = await holdingsOf(app, user, { event: 'wallet-refresh' })
  assert.equal(statuses(later)['137'], 'ok')
  return tookMs
}
