/** kill -9 at the boundaries of the exchange of a trading key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Deed, openVenuePoints } from './venue-points.ts'

type Agents = { agents: { address: string; user: string }[] }

const rotate: Deed = {
  kind: 'perp_setup',
  path: 'perp/setup',
  body: () => ({ rotate: true }),
  async prepare({ told }, ask) {
    // The key that the customer has already.
    told.push(await ask('perp/setup', 'setup', {}))
  },
  async judge({ customer, venue, told }, last) {
    const { agents } = await venue<Agents>('GET', '/effects')
    const own = agents.filter(({ user }) => user.toLowerCase() === customer.address.toLowerCase())
    const keyOf = ({ result }: typeof last) =>
      (result as unknown as { api_wallet_address: string }).api_wallet_address.toLowerCase()
    assert.ok(
      own.some(({ address }) => address.toLowerCase() === keyOf(last)),
      'the venue knows the last key',
    )
    assert.equal(new Set(told.map(keyOf)).size, told.length, 'each task has a key of its own')
  },
}

test(`killed at any point of ${rotate.kind}, it happens exactly once`, async (t) => {
  await using ground = await openVenuePoints()
  t.diagnostic(await ground.killAll(rotate))
})
