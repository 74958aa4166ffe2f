/** Addresses of others that may receive: added by a person, effective after a time, removed by anyone of the account. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { signedInPerson } from './signed-in.ts'
import { createFundedPerson, type Person } from './users.ts'
import { base, solana, type World, worldOf } from './world.ts'

const someone = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const solanaWallet = 'DZchFr2n6SCURi4pT6zVZ2w7pi4xLtrx6nj5PdhdFYLN'
const solanaUsdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'

type Recipient = {
  recipient_id: string
  address: string
  status: string
  effective_at: string
  agents: string
}
type Refusal = { code: string; requires: string; detail: { loc: string[]; type: string; msg: string }[] }
const add = <B = Recipient>(person: Person, body: object) => person.call<B>('POST /v1/recipients', { body })
const listed = async (person: Person) =>
  (await person.call<{ recipients: Recipient[] }>('GET /v1/recipients')).body.recipients

describe('recipients', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let person: Person
  before(async () => {
    gateway = await freshGateway({ COOLING_SECONDS: '2' })
    world = await worldOf(gateway.world)
    person = await signedInPerson(gateway)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  test('an address is pending, then effective; adding it again changes nothing, and it is removed at once', async () => {
    const wanted = { chain_id: 'base', address: someone, label: 'Cold wallet' }
    const { status, body } = await add(person, wanted)
    assert.deepEqual([status, body.status, body.agents], [200, 'pending', 'denied'])
    assert.deepEqual((await add(person, wanted)).body.recipient_id, body.recipient_id)
    const other = await add<Refusal>(person, { ...wanted, agents: 'allowed' })
    assert.deepEqual([other.status, other.body.code], [409, 'conflict'])
    const effective = async () => (await listed(person))[0]?.status === 'effective' || undefined
    await eventually(effective, 'the address is effective')
    assert.ok(Date.now() >= Date.parse(body.effective_at))
    const removed = await person.call(`DELETE /v1/recipients/${body.recipient_id}`)
    assert.equal(removed.status, 200)
    assert.deepEqual(await listed(person), [])
    const { events } = (
      await person.call<{ events: { data: { cause: string } }[] }>(
        'GET /v1/notifications?types=policy.changed',
      )
    ).body
    assert.deepEqual(
      events.map(({ data }) => data.cause),
      ['recipient_added', 'recipient_removed'],
    )
  })

  test('a wallet on Solana is added as it is spelled', async () => {
    const { body } = await add(person, {
      chain_id: solana,
      address: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
      label: 'Sol',
      agents: 'allowed',
    })
    assert.deepEqual([body.status, body.agents], ['pending', 'allowed'])
  })

  test('what cannot receive is refused at the field', async () => {
    const [token] = (world.manifest.tokens[base] ?? []).filter(({ symbol }) => symbol !== 'USDC')
    assert.ok(token)
    const refusals: [object, string, RegExp][] = [
      [{ chain_id: base, address: someone.toLowerCase() }, 'address', /checksum/],
      [{ chain_id: base, address: `${someone.slice(0, -1)}9` }, 'address', /checksum/],
      [{ chain_id: base, address: '0x0000000000000000000000000000000000000000' }, 'address', /zero address/],
      [{ chain_id: base, address: person.evm }, 'address', /your own wallet/],
      [{ chain_id: base, address: world.usdc }, 'address', /token/],
      [{ chain_id: base, address: world.vault }, 'address', /contract/],
      [{ chain_id: solana, address: person.solana }, 'address', /your own wallet/],
      [{ chain_id: solana, address: solanaUsdc }, 'address', /token/],
      [{ chain_id: solana, address: solanaWallet }, 'address', /uses/],
      [{ chain_id: solana, address: someone }, 'address', /Solana/],
      [{ chain_id: '10', address: someone }, 'chain_id', /chain that is served/],
    ]
    for (const [body, field, sentence] of refusals) {
      const refused = await add<Refusal>(person, { ...body, label: 'x' })
      const [issue] = refused.body.detail
      assert.deepEqual(
        [refused.status, issue?.loc],
        [422, ['body', field]],
        JSON.stringify([body, refused.body]),
      )
      assert.match(issue?.msg ?? '', sentence)
    }
  })

  test('a key pair adds none', async () => {
    const agent = await createFundedPerson(gateway.url)
    const refused = await add<Refusal>(agent, { chain_id: base, address: someone, label: 'x' })
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.requires],
      [403, 'step_up_required', 'person'],
    )
  })
})
