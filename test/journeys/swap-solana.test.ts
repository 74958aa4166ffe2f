import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { assertMeasured, balancesOf, createFundedPerson, executed, swapOf } from './swap-users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

describe('a user bridges to Solana and from it', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({}, { ownWorld: 'the solver refuses deposits' })
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const into = {
    chain_id_in: base,
    chain_id_out: 'solana',
    token_in: 'USDC',
    token_out: 'USDC',
    amount: '50000000',
  }

  test('USDC and SOL arrive on Solana at a wallet that never had a lamport', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const dollars = await executed(person, into)
    const sol = await executed(person, { ...into, token_out: 'SOL' })
    assert.equal(dollars.balance_changes.at(-1)?.amount, dollars.result.amount_out)
    assert.equal(sol.balance_changes.at(-1)?.chain_id, solana)
    await assertMeasured(world, person, held, [dollars, sol])
  })

  test('USDC and SOL leave Solana, and the sponsor pays fee and rent', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const dollars = await executed(person, { ...into, amount: '80000000' })
    const sol = await executed(person, { ...into, token_out: 'SOL', amount: '60000000' })
    const home = await executed(person, {
      chain_id_in: 'solana',
      chain_id_out: polygon,
      token_in: 'USDC',
      token_out: 'USDC',
      amount: '40000000',
    })
    // To the last lamport: nothing is kept back for fees.
    const all = await executed(person, {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'SOL',
      token_out: 'ETH',
      amount: sol.result.amount_out,
    })
    assert.equal(all.result.amount_in, sol.result.amount_out)
    const inside = await executed(person, {
      chain_id_in: solana,
      token_in: 'USDC',
      token_out: 'BONK',
      amount: '20000000',
    })
    await assertMeasured(world, person, held, [dollars, sol, home, all, inside])
  })

  test('a deposit on Solana that cannot be filled is refunded there', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const dollars = await executed(person, into)
    await world.solver('/force', { failReason: 'SLIPPAGE' })
    const { body: done } = await swapOf(person, {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'USDC',
      token_out: 'USDC',
      amount: '30000000',
    })
    assert.deepEqual(
      [done.error?.code, done.result.failure_reason],
      ['refunded', 'slippage'],
      JSON.stringify(done),
    )
    assert.equal(done.result.refunded?.chain_id, solana)
    await assertMeasured(world, person, held, [dollars, done])
  })

  test('a quote from Solana is bound, and more than the balance is refused before a task exists', async () => {
    const person = await createFundedPerson(gateway.url)
    await executed(person, into)
    const tasks = await person.taskCount()
    const request = {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '20000000',
    }
    const { body: dry } = await swapOf(person, { ...request, dryrun: true })
    assert.equal(dry.dryrun, true, JSON.stringify(dry))
    for (const dryrun of [true, false]) {
      const { status, body } = await swapOf(person, { ...request, amount: '20000000000', dryrun })
      assert.deepEqual([status, body.code], [409, 'insufficient_balance'], JSON.stringify(body))
    }
    assert.equal(await person.taskCount(), tasks)
    const done = await executed(person, { ...request, quote_id: dry.quote.quote_id })
    assert.ok(BigInt(done.result.amount_out) >= BigInt(dry.quote.amount_out_min))
  })
  test('a sale reads the tokens that it sells, however many others were sent to the wallet', async () => {
    const person = await createFundedPerson(gateway.url)
    await executed(person, into)
    // A wallet with too many token accounts: its node gives no list of them.
    await world.fault('solana', { status: 503, methods: ['getTokenAccountsByOwner'] })
    const sale = {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '20000000',
    }
    await executed(person, sale).finally(() => world.heal())
  })
})
