/** Deposits of swaps from Solana: at Relay's program, or by a transfer, and never as a hostile quote wants them. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { depositoryProgram, depositoryState, depositoryVault } from '#world/solana/depository-accounts.ts'
import { worldKeyPair } from '#world/solana/keys.ts'
import { freshGateway } from '../harness/gateway.ts'
import { processWorld } from '../harness/process-world.ts'
import { apiProxy } from '../harness/service-proxies.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  executed,
  type SwapBody,
  solanaHeld,
  swapOf,
} from './swap-users.ts'
import type { Person } from './users.ts'
import { base, solana, type World, worldOf } from './world.ts'

type Key = { pubkey: string; isSigner: boolean; isWritable: boolean }
type Instruction = { programId: string; keys: Key[]; data: string }
type Order = { orderId: string; paymentDetails: { currency: string; amount: string } }
type Quote = {
  steps: {
    requestId: string
    items: { data: { instructions: Instruction[]; addressLookupTableAddresses: string[] } }[]
  }[]
  protocol: { v2: Order }
}
type Transaction = {
  meta: { err: unknown; logMessages: string[] }
  version: number
  transaction: {
    message: {
      accountKeys: { pubkey: string; signer: boolean; source: string }[]
      instructions: { programId: string; accounts?: string[] }[]
    }
  }
}
const sponsors = [1, 2].map((index) => worldKeyPair(`solana sponsor ${index}`).address)
const solver = worldKeyPair('solver').address
const stranger = worldKeyPair('stranger').address

describe('a deposit on Solana', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let relay: Awaited<ReturnType<typeof apiProxy>>
  before(async () => {
    const urls = await processWorld()
    relay = await apiProxy(urls.solver)
    gateway = await freshGateway({ RELAY_URL: relay.url, LIFI_URL: 'off' })
    world = await worldOf(gateway.world)
  })
  afterEach(() => relay.replace())
  after(async () => {
    await gateway?.[Symbol.asyncDispose]()
    await relay?.[Symbol.asyncDispose]()
  })

  const read = async (signature: string) => {
    const config = { encoding: 'jsonParsed', maxSupportedTransactionVersion: 0, commitment: 'confirmed' }
    return (await world.rpc('getTransaction', [signature, config], world.manifest.urls.solana)) as Transaction
  }
  /** The person has these on Solana, and no lamport but those. */
  const holding = async (token: 'USDC' | 'SOL'): Promise<Person> => {
    const person = await createFundedPerson(gateway.url)
    const into = { chain_id_in: base, chain_id_out: solana, token_in: 'USDC', amount: '60000000' }
    await executed(person, { ...into, token_out: token })
    return person
  }
  const heldBy = (owner: string, token: string) => solanaHeld(world, owner, token)
  const depositOf = ({ transactions }: SwapBody) => transactions[0]!.tx_hash

  for (const [token, out] of [
    ['USDC', 'ETH'],
    ['SOL', 'USDC'],
  ] as const)
    test(`of ${token} is made at the program: the vault has it, and the sponsor has paid`, async () => {
      const person = await holding(token)
      const held = await balancesOf(world, person)
      const before = await heldBy(depositoryVault, token)
      const amount = await heldBy(person.solana, token)
      const lamports = await heldBy(person.solana, 'SOL')
      const done = await executed(person, {
        chain_id_in: solana,
        chain_id_out: base,
        token_in: token,
        token_out: out,
        amount: String(amount),
      })
      assert.equal((await heldBy(depositoryVault, token)) - before, amount)
      assert.equal(await heldBy(person.solana, token), 0n)
      if (token === 'USDC') assert.equal(lamports, 0n, 'the user has no lamport')
      const { meta, version, transaction } = await read(depositOf(done))
      assert.equal(meta.err, null)
      const { accountKeys, instructions } = transaction.message
      assert.equal(version, 0)
      assert.ok(sponsors.includes(accountKeys[0]!.pubkey), 'the sponsor pays the fee')
      assert.deepEqual(
        accountKeys.filter(({ signer }) => signer).map(({ pubkey }) => pubkey),
        [accountKeys[0]!.pubkey, person.solana],
      )
      assert.ok(
        accountKeys.every(({ source }) => source === 'transaction'),
        'no lookup table is used',
      )
      const names = instructions.map(({ programId }) => programId)
      const budget = 'ComputeBudget111111111111111111111111111111'
      assert.deepEqual(names, [budget, budget, depositoryProgram])
      assert.deepEqual(instructions[2]!.accounts?.slice(0, 4), [
        depositoryState,
        person.solana,
        person.solana,
        depositoryVault,
      ])
      assert.ok(
        meta.logMessages.some((line) => line.startsWith('Program data: ')),
        'the event is logged',
      )
      await assertMeasured(world, person, held, [done])
    })

  test('that cannot be filled is refunded, and one by a transfer is filled as well', async () => {
    const person = await holding('USDC')
    const held = await balancesOf(world, person)
    const sale = {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '20000000',
    }
    await world.solver('/force', { failReason: 'SLIPPAGE' })
    const { body: refunded } = await swapOf(person, sale)
    assert.deepEqual([refunded.error?.code, refunded.result.refunded?.chain_id], ['refunded', solana])
    const vault = await heldBy(depositoryVault, 'USDC')
    const inventory = await heldBy(solver, 'USDC')
    await world.solver('/realism', { solanaDeposits: 'transfer' })
    const transferred = await executed(person, sale)
    await world.solver('/realism', { solanaDeposits: 'program' })
    assert.equal(await heldBy(depositoryVault, 'USDC'), vault)
    assert.equal(await heldBy(solver, 'USDC'), inventory + 20_000_000n)
    await assertMeasured(world, person, held, [refunded, transferred])
  })

  test('in another form than ours is refused before a task exists, and nothing moves', async () => {
    const person = await holding('USDC')
    const tasks = await person.taskCount()
    const usdc = await heldBy(person.solana, 'USDC')
    const at = (index: number, change: Partial<Key>) => (quote: Quote) => {
      Object.assign(quote.steps[0]!.items[0]!.data.instructions[0]!.keys[index]!, change)
    }
    const data = (change: (text: string) => string) => (quote: Quote) => {
      const [instruction] = quote.steps[0]!.items[0]!.data.instructions
      instruction!.data = change(instruction!.data)
    }
    const theft = (quote: Quote) => {
      const keys = [
        { pubkey: person.solana, isSigner: true, isWritable: true },
        { pubkey: stranger, isSigner: false, isWritable: true },
      ]
      const transfer = {
        programId: '11111111111111111111111111111111',
        keys,
        data: '020000000100000000000000',
      }
      quote.steps[0]!.items[0]!.data.instructions.push(transfer)
    }
    const hostile: Record<string, (quote: Quote) => void> = {
      'another vault': at(3, { pubkey: stranger }),
      'other settings': at(0, { pubkey: stranger }),
      'another depositor': at(2, { pubkey: stranger }),
      'another signer': at(2, { pubkey: stranger, isSigner: true }),
      'another mint': at(4, { pubkey: stranger }),
      'another account of the vault': at(6, { pubkey: stranger }),
      'another program': (quote) => {
        quote.steps[0]!.items[0]!.data.instructions[0]!.programId = stranger
      },
      'a unit more': data((text) => text.replace(/^(.{16})../, '$101')),
      'another order': data((text) => `${text.slice(0, -2)}${text.endsWith('00') ? '01' : '00'}`),
      'an instruction more': theft,
      'an order for more': (quote) => {
        quote.protocol.v2.paymentDetails.amount = '20000001'
      },
    }
    const sale = {
      chain_id_in: solana,
      chain_id_out: base,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '20000000',
    }
    for (const [name, change] of Object.entries(hostile)) {
      relay.replace((path, truth) => {
        if (!path.startsWith('/quote')) return undefined
        const quote = truth as Quote
        change(quote)
        return { body: quote }
      })
      const { status, body } = await swapOf(person, sale)
      assert.deepEqual([status, body.code], [503, 'upstream_changed'], `${name}: ${JSON.stringify(body)}`)
      assert.ok(relay.replaced() > 0, name)
    }
    assert.equal(await person.taskCount(), tasks)
    assert.equal(await heldBy(person.solana, 'USDC'), usdc)
    // A table of the answer is not used, whatever it is.
    relay.replace((path, truth) => {
      if (!path.startsWith('/quote')) return undefined
      const quote = truth as Quote
      quote.steps[0]!.items[0]!.data.addressLookupTableAddresses = [stranger, depositoryProgram]
      return { body: quote }
    })
    await executed(person, sale)
    assert.equal(await heldBy(person.solana, 'USDC'), usdc - 20_000_000n)
  })
})
