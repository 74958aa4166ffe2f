/** What a payment of a provider brought: its own amount, in native coins as well, and nothing of other transactions. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { testFunding } from '../harness/conservation.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  executed,
  native,
  type SwapBody,
  swapOf,
  usdcToPolygon,
} from './swap-users.ts'
import { base, polygon, type World, worldOf } from './world.ts'

describe('a provider names payments that are not its own', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway(
      { LIFI_URL: 'off' },
      { ownWorld: 'the solver lies, and blocks are mined by hand' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const refundedFor = (done: SwapBody) =>
    assert.deepEqual(
      [done.status, done.error?.code, done.result.amount_out],
      ['failed', 'refunded', '0'],
      JSON.stringify(done),
    )

  test('the fill of one swap does not end another one', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const first = await executed(person, usdcToPolygon)
    await world.solver('/announce', { txHash: first.result.tx_hash })
    const { body: second } = await swapOf(person, usdcToPolygon)
    refundedFor(second)
    // In other letters it is the same transaction.
    await world.solver('/announce', { txHash: `0x${first.result.tx_hash.slice(2).toUpperCase()}` })
    const { body: third } = await swapOf(person, usdcToPolygon)
    refundedFor(third)
    await assertMeasured(world, person, held, [first, second, third])
  })

  test('a swap that the user made on the other chain is no fill', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const own = await executed(person, {
      chain_id_in: polygon,
      token_in: 'USDC',
      token_out: 'LINK',
      amount: '20000000',
    })
    await world.solver('/announce', { txHash: own.result.tx_hash })
    const { body: bridged } = await swapOf(person, { ...usdcToPolygon, token_out: 'LINK' })
    refundedFor(bridged)
    await assertMeasured(world, person, held, [own, bridged])
  })

  test('what somebody else paid just before the swap is no part of it', async () => {
    const person = await createFundedPerson(gateway.url)
    const dust = await world.fund(polygon, person.evm, 'USDC', '0.000001')
    const held = await balancesOf(world, person)
    await world.solver('/announce', { txHash: dust })
    const { body: done } = await swapOf(person, usdcToPolygon)
    refundedFor(done)
    await assertMeasured(world, person, held, [done])
  })

  const gift = 12_345n

  /** Gives coins to the user as soon as two payments to it wait on Base, and mines all three as one block. */
  const mineTogether = async (owner: string, isOver: () => boolean) => {
    const url = world.manifest.urls.evm[base]
    const [giver] = (await world.rpc('eth_accounts', [], url)) as string[]
    type Pending = { pending: Record<string, Record<string, { to: string; input: string }>> }
    const waiting = async () => {
      const { pending } = (await world.rpc('txpool_content', [], url)) as Pending
      const all = Object.values(pending).flatMap((each) => Object.values(each))
      return all.filter(({ to, input }) => (to + input).toLowerCase().includes(owner.slice(2).toLowerCase()))
    }
    await eventually(
      async () => (isOver() || (await waiting()).length >= 2 ? true : undefined),
      'two payments wait, or are made',
      30_000,
    )
    const value = `0x${gift.toString(16)}`
    await world.rpc('eth_sendTransaction', [{ from: giver, to: owner, value }], url)
    await world.rpc('evm_mine', [], url)
  }

  const roundsMax = 5
  test('two refunds and a gift in native coins of one block are each its own', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const bought = await executed(person, {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: native,
      amount: '200000000',
    })
    const url = world.manifest.urls.evm[base]
    const all: Pick<SwapBody, 'balance_changes'>[] = [bought]

    /** The blocks of both refunds. */
    const refundTwo = async (): Promise<number[]> => {
      const ether = await world.nativeOf(person.evm)
      await world.solver('/force', { failReason: 'SOLVER_CAPACITY_EXCEEDED', count: 2 })
      await world.solver('/realism', { fillLag: 2_500 })
      const swaps = await Promise.all(
        [ether / 2n, ether / 4n].map((amount) =>
          swapOf(person, { ...usdcToPolygon, token_in: 'ETH', amount: String(amount) }, { query: '' }),
        ),
      )
      for (const { status, body } of swaps) assert.equal(status, 200, JSON.stringify(body))
      const areDeposited = async () => {
        const tasks = await Promise.all(swaps.map(({ body }) => person.task(body.task_id)))
        return tasks.every(({ state }) => state === 'settling') ? true : undefined
      }
      await eventually(areDeposited, 'both deposits are made')
      await world.rpc('evm_setAutomine', [false], url)
      let isOver = false
      const ends = Promise.all(swaps.map(({ body }) => person.ended(body.task_id, 60_000))).finally(() => {
        isOver = true
      })
      await mineTogether(person.evm, () => isOver).finally(() => world.rpc('evm_setAutomine', [true], url))
      testFunding.add({ evm: person.evm }, { asset: 'gas:8453', units: gift, why: 'a gift' })
      const ended = (await ends) as unknown as SwapBody[]
      await world.solver('/realism', { preset: 'quiet' })
      for (const each of ended) refundedFor(each)
      const given = { chain_id: base, token_address: native, symbol: 'ETH', amount: String(gift) }
      all.push(...ended, { balance_changes: [given] })
      const receipts = await Promise.all(
        ended.map(({ result }) => world.rpc('eth_getTransactionReceipt', [result.refunded!.tx_hash], url)),
      )
      return receipts.map((receipt) => Number((receipt as { blockNumber: string }).blockNumber))
    }

    // A read that finds the head old mines a block: then the payments are in two of them, and it is done again.
    let together = 0
    for (let round = 0; round < roundsMax && together === 0; round += 1) {
      const [one, other] = await refundTwo()
      if (one === other) together += 1
      await assertMeasured(world, person, held, all)
    }
    assert.equal(together, 1, 'no block had both refunds')
  })
})
