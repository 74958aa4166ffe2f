/** A user with a wallet, a swapped token, a vault position, perpetuals, spot balances and orders that wait, and the same facts as the world itself has them. */
import assert from 'node:assert/strict'
import type { Gateway } from '../../harness/gateway.ts'
import { creditAtVenue, venueControl } from '../../harness/venue-gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from '../../journeys/users.ts'
import { arbitrum, base, polygon, solana, type World, worldOf } from '../../journeys/world.ts'

export type AskedWorld = {
  person: Person
  world: World
  /** What the swap to ETH on Base has cost. */
  paidUsd: string
}

export async function createAskedWorld(gateway: Gateway & { world: string }): Promise<AskedWorld> {
  const world = await worldOf(gateway.world)
  const venue = venueControl(gateway.world)
  await venue('POST', '/settings', { walking: false })
  for (const { coin, mark } of await venue<{ coin: string; mark: string }[]>('GET', '/markets'))
    await venue('POST', '/price', { coin, price: Number(mark) })
  const person = await createFundedPerson(gateway.url)
  const run = async (path: string, body: object): Promise<TaskBody> => {
    const { status, body: task } = await person.call<TaskBody>(`POST /v1/${path}?wait=true&timeout=60`, {
      body,
    })
    assert.ok(status === 200 && task.status === 'completed', `${path}: ${JSON.stringify(task)}`)
    return task
  }
  await Promise.all([
    world.fund(polygon, person.evm, 'USDC', '250'),
    world.fund(arbitrum, person.evm, 'USDC', '400'),
    world.fund(solana, person.solana, 'USDC', '75'),
    world.fund(solana, person.solana, 'native', '3'),
    creditAtVenue(venue, { evm: person.evm, amount: '1500' }),
    creditAtVenue(venue, { evm: person.evm, coin: 'HYPE', amount: '20' }),
  ])
  await run('perp/setup', {})
  await run('perp/open', { asset: 'ETH', side: 'long', notional_usd: '400', leverage: 4 })
  await run('perp/open', { asset: 'SOL', side: 'short', notional_usd: '200', leverage: 2 })
  await run('perp/open', {
    asset: 'BTC',
    side: 'long',
    notional_usd: '100',
    leverage: 5,
    order_type: 'limit',
    limit_price: '90000',
  })
  await run('spot_venue/sell', { asset: 'HYPE', size: '2', order_type: 'limit', limit_price: '60' })
  const paid = { chain_id_in: base, token_in: 'USDC', token_out: 'ETH' }
  await run('swap', { ...paid, amount_usd: '300' })
  await run('earn/deposit', { amount_usdc: '150' })
  await run('limit-orders', {
    ...paid,
    amount_usd: '50',
    price_usd_trigger: '2500',
    condition: 'lte',
    trigger_token_address: 'ETH',
    trigger_token_chain: base,
  })
  const hook = await person.call('POST /v1/hooks', {
    body: { chain_id: base, token_address: 'cbBTC', stop_losses: [{ price_usd: '80000' }] },
  })
  assert.equal(hook.status, 200, JSON.stringify(hook.body))
  return { person, world, paidUsd: '300' }
}
