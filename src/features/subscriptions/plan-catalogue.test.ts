import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { Price } from '#upstreams/stripe/stripe.ts'
import { createPlanCatalogue, usdOf } from './plan-catalogue.ts'

const priceOf = (id: string, more: Partial<Price> = {}): Price => ({
  id,
  cents: 1_000n,
  currency: 'usd',
  interval: 'month',
  isActive: true,
  ...more,
})
const prices: Record<string, Price> = {
  price_now: priceOf('price_now'),
  price_former: priceOf('price_former', { cents: 800n, isActive: false }),
  price_euro: priceOf('price_euro', { currency: 'eur' }),
}
const plans = Object.keys(prices).map((priceId) => ({ name: priceId.slice(6), priceId, credits: 1n }))

function catalogueOf() {
  const provider: { isAway: boolean; unreadable?: string } = { isAway: false }
  const price = async (id: string): Promise<Price> => {
    if (provider.isAway || id === provider.unreadable)
      throw new Fault('unavailable', 'The payment provider is away')
    return prices[id]!
  }
  return { provider, catalogue: createPlanCatalogue(plans, { price }) }
}
const isUnknownPrice = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'validation' && error.issues[0]?.type === 'unknown_price'

test('only active prices in USD are sold, and one that is not sold is refused with those that are', async () => {
  const { catalogue } = catalogueOf()
  assert.deepEqual(
    (await catalogue.sold()).map(({ priceId, cents }) => [priceId, usdOf(cents)]),
    [['price_now', '10']],
  )
  assert.equal((await catalogue.requireSold('price_now')).name, 'now')
  for (const id of ['price_former', 'price_euro', 'price_none'])
    await assert.rejects(catalogue.requireSold(id), (error) => {
      assert.ok(isUnknownPrice(error), id)
      assert.deepEqual((error as Fault).issues[0]?.ctx, { possible: ['price_now'] })
      return true
    })
})

test('a former price still says what its subscribers pay', async () => {
  const { catalogue } = catalogueOf()
  assert.deepEqual(await catalogue.priced('price_former'), {
    name: 'former',
    priceId: 'price_former',
    credits: 1n,
    cents: 800n,
    interval: 'month',
    isSold: false,
  })
  assert.equal(await catalogue.priced('price_none'), undefined)
  assert.equal(await catalogue.priced('price_euro'), undefined)
})

test('a price that cannot be read leaves the others for sale', async () => {
  const { catalogue, provider } = catalogueOf()
  provider.unreadable = 'price_former'
  assert.deepEqual(
    (await catalogue.sold()).map(({ priceId }) => priceId),
    ['price_now'],
  )
  await assert.rejects(catalogue.requireSold('price_former'), { code: 'unavailable' })
})

test('prices that nobody can read are not sold', async () => {
  const { catalogue, provider } = catalogueOf()
  provider.isAway = true
  await assert.rejects(catalogue.sold(), { code: 'unavailable' })
  provider.isAway = false
  assert.equal((await catalogue.sold()).length, 1)
})
