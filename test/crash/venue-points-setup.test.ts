/** kill -9 at the boundaries of the replacement of a trading key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TaskCase, venuePoints } from './venue-points.ts'

type Agents = { agents: { address: string; user: string }[] }

const rotate: TaskCase = {
  kind: 'perp_setup',
  path: 'perp/setup',
  body: () => ({ rotate: true }),
  async prepare({ replies }, send) {
    // The current key of the customer.
    replies.push(await send('perp/setup', 'setup', {}))
  },
  async verify({ customer, venue, replies }, last) {
    const { agents } = await venue<Agents>('GET', '/effects')
    const own = agents.filter(({ user }) => user.toLowerCase() === customer.address.toLowerCase())
    const keyOf = ({ result }: typeof last) =>
      (result as unknown as { api_wallet_address: string }).api_wallet_address.toLowerCase()
    assert.ok(
      own.some(({ address }) => address.toLowerCase() === keyOf(last)),
      'the venue knows the last key',
    )
    assert.equal(new Set(replies.map(keyOf)).size, replies.length, 'each task has a key of its own')
  },
}

test(`killed at any point of ${rotate.kind}, it happens exactly once`, async (t) => {
  const points = await venuePoints()
  t.diagnostic(await points.killAll(rotate))
})
