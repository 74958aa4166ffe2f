/** Sends to others: only to effective recipients, once, within the limits, and by agents only where a person allows it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { base58 } from '#upstreams/solana/base58.ts'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { signedInPerson } from './signed-in.ts'
import type { Person, TaskBody } from './users.ts'
import { base, solana, type World, worldOf } from './world.ts'

const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const solanaFriend = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T'

type Recipient = { recipient_id: string; status: string }
type Answer = TaskBody & { rule?: string; detail: unknown }
const send = (person: Person, body: object, key?: string) =>
  person.call<Answer>('POST /v1/wallets/transfer?wait=true', { body, ...(key && { key }) })

describe('transfers to others', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({ COOLING_SECONDS: '6' })
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const allow = async (person: Person, body: object): Promise<string> => {
    const { status, body: added } = await person.call<Recipient>('POST /v1/recipients', {
      body: { label: 'Friend', agents: 'allowed', ...body },
    })
    assert.equal(status, 200, JSON.stringify(added))
    return added.recipient_id
  }
  const effective = (person: Person) =>
    eventually(
      async () => {
        const { recipients } = (await person.call<{ recipients: Recipient[] }>('GET /v1/recipients')).body
        return recipients.every(({ status }) => status === 'effective') || undefined
      },
      'the recipients are effective',
      20_000,
    )
  const sender = async () => {
    const person = await signedInPerson(gateway)
    await world.fund(base, person.evm, 'USDC', '100')
    await world.fund(base, person.evm, 'native', '1')
    await world.fund(solana, person.solana, 'native', '1')
    await world.fund(solana, person.solana, 'USDC', '50')
    return person
  }
  const assertSent = ({ status, body }: { status: number; body: Answer }) =>
    assert.deepEqual(
      [status, body.status, body.outcome],
      [200, 'completed', 'executed'],
      JSON.stringify(body),
    )

  test('tokens and coins reach an effective recipient once, on both families of chains', async () => {
    const person = await sender()
    const usdc = { chain_id: base, token: 'USDC', amount: '5000000', recipient: friend }
    const early = await send(person, usdc)
    assert.deepEqual([early.status, early.body.code, early.body.rule], [403, 'policy_denied', 'recipient'])
    await allow(person, { chain_id: base, address: friend })
    const reserved = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
    await allow(person, { chain_id: base, address: reserved, agents: 'denied' })
    const pending = await send(person, usdc)
    assert.deepEqual([pending.status, pending.body.rule], [403, 'recipient'])
    await allow(person, { chain_id: solana, address: solanaFriend })
    await effective(person)

    const waiting = await person.send<{ state: string; task_id: string }>('POST /v1/wallets/transfer', {
      body: { ...usdc, recipient: reserved },
    })
    assert.equal(waiting.body.state, 'awaiting_approval', 'an app never sends there by itself')

    const before = await world.usdcOf(friend)
    const sent = await send(person, usdc, 'once')
    assertSent(sent)
    assert.deepEqual(
      sent.body.balance_changes.map(({ symbol, amount }) => [symbol, amount]),
      [['USDC', '-5000000']],
    )
    assert.equal((await send(person, usdc, 'once')).body.task_id, sent.body.task_id)
    assert.equal((await world.usdcOf(friend)) - before, 5_000_000n)

    const nativeBefore = await world.nativeOf(friend)
    const native = await send(person, { ...usdc, token: 'ETH', amount: '1000000000000000' })
    assertSent(native)
    assert.equal((await world.nativeOf(friend)) - nativeBefore, 1_000_000_000_000_000n)
    assert.deepEqual(
      native.body.balance_changes.map(({ symbol, amount }) => [symbol, amount]),
      [['ETH', '-1000000000000000']],
    )

    await world.fund(solana, solanaFriend, 'USDC', '1')
    const lamports = await world.solOf(solanaFriend)
    assertSent(
      await send(person, { chain_id: solana, token: 'SOL', amount: '10000000', recipient: solanaFriend }),
    )
    assert.equal((await world.solOf(solanaFriend)) - lamports, 10_000_000n)
    assertSent(
      await send(person, { chain_id: solana, token: 'USDC', amount: '2000000', recipient: solanaFriend }),
    )
  })

  test('the gateway pays no rent of a token account that its owner could close for the coins', async () => {
    const person = await sender()
    const closer = base58(randomBytes(32))
    await allow(person, { chain_id: solana, address: closer })
    await effective(person)
    const dust = { chain_id: solana, token: 'USDC', amount: '1', recipient: closer }
    const refused = await send(person, dust)
    const confirmed = { commitment: 'confirmed', encoding: 'jsonParsed' }
    const programId = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
    const { urls } = world.manifest
    const paid = await world.rpc('getTokenAccountsByOwner', [closer, { programId }, confirmed], urls.solana)
    assert.deepEqual((paid as { value: unknown[] }).value, [])
    assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'], JSON.stringify(refused.body))
    assert.match(String(refused.body.detail), /has no account for USDC/)
    await world.fund(solana, closer, 'USDC', '1')
    assertSent(await send(person, dust))
  })

  test('a removed recipient, another chain, a spent cap and the kill switch stop a transfer', async () => {
    const person = await sender()
    const id = await allow(person, { chain_id: base, address: friend })
    await effective(person)
    const usdc = { chain_id: base, token: 'USDC', amount: '5000000', recipient: friend }
    const elsewhere = await send(person, { ...usdc, chain_id: '42161' })
    assert.deepEqual([elsewhere.status, elsewhere.body.rule], [403, 'recipient'])
    const unlisted = await send(person, { ...usdc, token: friend })
    assert.equal(unlisted.status, 422)
    const short = await send(person, { ...usdc, amount: '20000000000' })
    assert.deepEqual([short.status, short.body.code], [409, 'insufficient_balance'])
    await person.call('PUT /v1/policy', { body: { per_transaction_usd: '4' } })
    assert.equal((await send(person, usdc)).body.rule, 'per_transaction_usd')
    const small = { ...usdc, amount: '1000000' }
    assertSent(await send(person, small))
    await person.call('POST /v1/kill', { body: { on: true } })
    assert.equal((await send(person, small)).body.code, 'trading_paused')
    await person.call('POST /v1/kill', { body: { on: false } })
    await person.call(`DELETE /v1/recipients/${id}`)
    assert.equal((await send(person, small)).body.rule, 'recipient')
  })
})
