/** Swaps by Relay's routers, in each form in which Relay answers for one chain. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { chainList } from '#features/chains/chain-list.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { withMinimum } from '#upstreams/evm/relay-calls.ts'
import { swapCallForms } from '#world/solver/realism.ts'
import { freshGateway, http } from '../harness/gateway.ts'
import { assertMeasured, balancesOf, createFundedPerson, executed, native } from './swap-users.ts'
import { base, type World, worldOf } from './world.ts'

type Quote = {
  steps: { items: { data: { to: string; data: string; value: string } }[] }[]
  details: { currencyOut: { amount: string } }
}

describe("swaps by Relay's routers", () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({}, { ownWorld: 'the solver quotes calls of its routers' })
    world = await worldOf(gateway.world)
    await world.fault('lifi', { refuse: true })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  for (const form of swapCallForms.filter((each) => each !== 'pool'))
    test(`tokens and native coins are swapped in both directions by router ${form}`, async () => {
      await world.solver('/realism', { swapCalls: form })
      const person = await createFundedPerson(gateway.url)
      const held = await balancesOf(world, person)
      const on = { chain_id_in: base }
      const tokens = await executed(person, { ...on, token_in: 'USDC', token_out: 'DAI', amount: '25000000' })
      const bought = await executed(person, { ...on, token_in: 'USDC', token_out: native, amount_usd: '40' })
      const ether = await world.nativeOf(person.evm)
      assert.equal(BigInt(bought.result.amount_out), ether)
      const sold = await executed(person, {
        ...on,
        token_in: native,
        token_out: 'USDC',
        amount: String(ether / 2n),
      })
      assert.equal(await world.nativeOf(person.evm), ether - ether / 2n)
      const back = await executed(person, { ...on, token_in: 'DAI', token_out: 'WETH', amount_usd: '10' })
      const all = [tokens, bought, sold, back]
      for (const { result } of all) {
        assert.equal(result.provider, 'relay')
        assert.ok(BigInt(result.amount_out) >= BigInt(result.amount_out_min))
      }
      await assertMeasured(world, person, held, all)
      for (const { router, approvalProxy } of chainList({
        urls: { [base]: 'http://base' },
        finality: 'local',
      }).flatMap((row) => (row.family === 'evm' ? (row.swaps?.relayRouters ?? []) : [])))
        for (const contract of [router, approvalProxy]) {
          assert.equal(await world.usdcOf(contract), 0n)
          assert.equal(await world.nativeOf(contract), 0n)
        }
    })

  test('an output below the minimum reverts in the block, whatever the calls of the quote accept', async () => {
    await world.solver('/realism', { swapCalls: '3.2' })
    const person = await createFundedPerson(gateway.url)
    await world.fund(base, person.evm, 'native', '1')
    const zero = `0x${'00'.repeat(20)}`
    const usdc = world.usdc.toLowerCase()
    const { body: quote } = await http<Quote>(`${world.manifest.urls.solver}/quote/v2`, {
      method: 'POST',
      body: {
        user: person.evm,
        recipient: person.evm,
        refundTo: person.evm,
        originChainId: Number(base),
        destinationChainId: Number(base),
        originCurrency: zero,
        destinationCurrency: usdc,
        amount: '10000000000000000',
        tradeType: 'EXACT_INPUT',
      },
    })
    const { to, data, value } = quote.steps.at(-1)!.items[0]!.data
    const sent = { to, data, value: BigInt(value) }
    const outUnits = BigInt(quote.details.currencyOut.amount)
    const run = (call: typeof sent) =>
      world
        .rpc('eth_call', [
          { from: person.evm, to: call.to, data: call.data, value: `0x${call.value.toString(16)}` },
          'latest',
        ])
        .then(
          () => 'runs',
          () => 'reverts',
        )
    const bound = (units: bigint) => withMinimum(sent, { token: usdc, recipient: person.evm, units })
    assert.equal(evmCrypto.decodeCall(sent), undefined, 'nothing binds the call of the quote')
    assert.equal(await run(sent), 'runs')
    assert.equal(await run(bound(outUnits)), 'runs')
    assert.equal(await run(bound(outUnits + 1n)), 'reverts')
  })
})
