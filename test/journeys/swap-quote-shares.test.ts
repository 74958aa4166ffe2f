/** The quotes of providers belong to those who have something to swap. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { createFundedPerson, executed, newAgent, personOf, swapOf } from './swap-users.ts'
import { base } from './world.ts'

const purchase = { chain_id_in: base, token_in: 'USDC', token_out: 'WETH', amount: '25000000' }
const sale = { chain_id_in: base, token_in: 'WETH', token_out: 'USDC', amount: '2000000000000000' }

describe('the quotes of providers', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  before(async () => {
    gateway = await freshGateway({ RELAY_QUOTES_PER_MINUTE: '60', LIFI_QUOTES_PER_TWO_HOURS: '60' })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('users without the token that they sell use up no quotes that others need', async () => {
    const holder = await createFundedPerson(gateway.url)
    await executed(holder, purchase)
    const codes = new Map<string, number>()
    for (let user = 0; user < 4; user += 1) {
      const pauper = await personOf(gateway.url, await newAgent(gateway.url))
      for (let count = 0; count < 20; count += 1) {
        const { body } = await swapOf(pauper, sale)
        codes.set(String(body.code), (codes.get(String(body.code)) ?? 0) + 1)
      }
    }
    const refused = await swapOf(holder, sale)
    assert.equal(refused.body.outcome, 'executed', JSON.stringify([[...codes], refused.body]))
    assert.equal(codes.get('unavailable'), undefined, JSON.stringify([...codes]))
  })
})
