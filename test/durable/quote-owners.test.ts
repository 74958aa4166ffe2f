/** Orders of several users that one quote decides: no user keeps those of another one from firing. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createRound } from '#engines/trigger-orders/price-watch.ts'
import { insertTriggerOrders } from '#engines/trigger-orders/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { silentLog } from '#kernel/log.ts'
import { eventually } from '../harness/gateway.ts'
import { type EngineFixture, executed, newUser, openFixture } from './engine-fixture.ts'

const steps = { only: async () => executed }
const fired = { kind: 'fired', version: 1, priority: 0 as const, steps }

describe('orders that share a quote', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  /** Of users with equally many orders the first one by id is asked first. */
  const twoUsers = () => [newUser(), newUser()].sort() as [string, string]
  const arm = async (market: string, userId: string, quoteKey = 'shared'): Promise<string> => {
    const id = newUser()
    const row = {
      id,
      user_id: userId,
      kind: 'fired',
      market,
      direction: 'lte' as const,
      trigger_price: '10',
      quote_key: quoteKey,
      input: {},
      created_at: new Date(),
    }
    await fixture.admin.transaction((tx) => insertTriggerOrders(tx, [row]))
    return id
  }
  const statusOf = async (id: string) =>
    (await fixture.rows<{ status: string }>('select status from trigger_order where id = $1', id))[0]?.status
  /** The price is below all triggers. */
  const roundOf = (
    market: string,
    { priceTriggers }: Awaited<ReturnType<EngineFixture['instance']>>,
    {
      quotePrice,
      quotesPerMinute = 6_000,
    }: { quotePrice: (userId: string) => string; quotesPerMinute?: number },
  ) =>
    createRound({
      db: fixture.admin.pool,
      clock,
      log: silentLog,
      priceTriggers,
      displayPrices: async (markets) =>
        new Map(
          markets.filter((each) => each === market).map((each) => [each, { price: '9', at: new Date() }]),
        ),
      quotePrice: async (_, userId) => quotePrice(userId),
      quotesPerMinute,
      isOnDuty: () => true,
    })
  const shareUsedUp = () =>
    new Fault('unavailable', 'The share of this account is used up', {
      extras: { budget: 'quotes', budget_of: 'account', retry_after: 3_600 },
    })

  test('where the share of one owner is used up the quote is asked in the name of the next one', async () => {
    await using a = await fixture.instance({ steps }, { internal: [fired] })
    const [spender, owner] = twoUsers()
    const market = `token:${newUser()}`
    const ids = [await arm(market, spender), await arm(market, owner)]
    const asked: string[] = []
    const round = roundOf(market, a, {
      // The two quotes that agree, and none for what was refused.
      quotesPerMinute: 2,
      quotePrice(userId) {
        asked.push(userId)
        if (userId === spender) throw shareUsedUp()
        return '9'
      },
    })
    for (let n = 0; n < 2; n++) await round()
    assert.deepEqual(await Promise.all(ids.map(statusOf)), ['fired', 'fired'])
    // Not asked twice while the share is used up.
    assert.deepEqual(asked, [spender, owner, owner])
  })

  test('many orders of a user without a share use up no quotes of the gateway', async () => {
    await using a = await fixture.instance({ steps }, { internal: [fired] })
    const [spender, owner] = twoUsers()
    const market = `token:${newUser()}`
    for (let n = 0; n < 8; n++) await arm(market, spender, `own ${n}`)
    const id = await arm(market, owner)
    const round = roundOf(market, a, {
      quotesPerMinute: 2,
      quotePrice(userId) {
        if (userId === spender) throw shareUsedUp()
        return '9'
      },
    })
    for (let n = 0; n < 3; n++) await round()
    assert.equal(await statusOf(id), 'fired')
  })

  test('however many owners of a quote have no share, the one who has one is asked after them, and again for the second quote', async () => {
    await using a = await fixture.instance({ steps }, { internal: [fired] })
    const market = `token:${newUser()}`
    const spenders = await fixture.rows<{ user_id: string }>(
      `insert into trigger_order
           (id, user_id, kind, market, direction, trigger_price, quote_key, input, status, created_at, updated_at)
         select gen_random_uuid(), gen_random_uuid(), 'fired', $1, 'lte', 10, 'shared', '{}', 'armed', now(), now()
         from generate_series(1, 300) returning user_id`,
      market,
    )
    const owner = newUser()
    // More orders than any of the others: the last one as they come.
    for (const quoteKey of ['own 1', 'own 2']) await arm(market, owner, quoteKey)
    const id = await arm(market, owner)
    const asked: string[] = []
    const round = roundOf(market, a, {
      quotePrice(userId) {
        asked.push(userId)
        if (userId !== owner) throw shareUsedUp()
        return '9'
      },
    })
    let rounds = 0
    while ((await statusOf(id)) !== 'fired' && rounds < 100) {
      await round()
      rounds += 1
    }
    assert.equal(await statusOf(id), 'fired')
    assert.ok(rounds <= spenders.length / 5 + 2, `${rounds} rounds`)
    assert.ok(asked.filter((userId) => userId !== owner).length <= spenders.length)
  })

  test('where the providers do not serve the account of one owner another one is asked next', async () => {
    await using a = await fixture.instance({ steps }, { internal: [fired] })
    const [refused, owner] = twoUsers()
    const market = `token:${newUser()}`
    const id = await arm(market, refused).then(() => arm(market, owner))
    const round = roundOf(market, a, {
      quotePrice(userId) {
        if (userId === refused) throw new Fault('policy_denied', 'The solver does not serve this address')
        return '9'
      },
    })
    await eventually(
      async () => {
        await round()
        return (await statusOf(id)) === 'fired' ? true : undefined
      },
      'the order fires',
      15_000,
    )
  })
})
